"""The style sheet of the notebook view. Every rule is scoped by the class of its outermost element, which has paper of
its own: light and dark notebooks show the same. Doubled classes outweigh the rules that notebooks have for tables."""

STYLE = """
.orion-plan.orion-plan { background: #fff; color: #1f2328; border: 1px solid #d1d9e0; border-radius: 6px;
  padding: 14px 18px; font: 13px/1.5 system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif;
  max-width: 1180px; }
.orion-plan.orion-plan h3 { font-size: 14px; font-weight: 600; margin: 0 0 10px; color: #1f2328; }
.orion-plan.orion-plan h4 { font-size: 13px; font-weight: 600; margin: 16px 0 4px; color: #1f2328; }
.orion-plan.orion-plan h3 code { font-size: 13px; font-weight: 600; }
.orion-plan.orion-plan p { margin: 4px 0; color: #1f2328; }
.orion-plan.orion-plan section { border-top: 1px solid #d1d9e0; margin-top: 14px; padding-top: 12px; }
.orion-plan.orion-plan .o-columns { display: flex; flex-wrap: wrap; gap: 20px 28px; align-items: flex-start; }
.orion-plan.orion-plan .o-columns > div { flex: 1 1 400px; min-width: 0; }
.orion-plan.orion-plan .o-columns > div.o-picture { flex: 0 1 auto; }
.orion-plan.orion-plan .o-picture svg { max-width: 100%; height: auto; display: block; }
.orion-plan.orion-plan code, .orion-plan.orion-plan pre { font: 12px/1.5 ui-monospace, 'SF Mono', Menlo, Consolas,
  'DejaVu Sans Mono', monospace; color: #1f2328; background: none; padding: 0; border: 0; }
.orion-plan.orion-plan pre { white-space: pre; overflow-x: auto; margin: 4px 0; }
.orion-plan.orion-plan table { border-collapse: collapse; margin: 2px 0 4px; font-size: 12.5px; color: #1f2328;
  background: #fff; border: 0; table-layout: auto; }
.orion-plan.orion-plan tr, .orion-plan.orion-plan tbody tr:nth-child(n), .orion-plan.orion-plan tbody tr:hover
  { background: #fff; }
.orion-plan.orion-plan th, .orion-plan.orion-plan td { text-align: left;
  vertical-align: baseline; line-height: 1.5; padding: 3px 14px 3px 0;
  border: 0; border-bottom: 1px solid #eaeef2; max-width: none; white-space: normal; }
.orion-plan.orion-plan thead th { color: #59636e; font-weight: 500; white-space: nowrap;
  border-bottom: 1px solid #d1d9e0; }
.orion-plan.orion-plan th[scope=row] { font-weight: 600; white-space: nowrap; }
.orion-plan.orion-plan table.o-facts th { color: #59636e; font-weight: 500; }
.orion-plan.orion-plan table.o-source td, .orion-plan.orion-plan table.o-source th { border: 0; padding: 0 14px 0 0;
  white-space: nowrap; }
.orion-plan.orion-plan table.o-source thead th { font-size: 11.5px; }
.orion-plan.orion-plan table.o-source td.o-number { color: #8c959f; text-align: right; user-select: none; }
.orion-plan.orion-plan table.o-source code { white-space: pre; }
.orion-plan.orion-plan table.o-tree td { white-space: nowrap; }
.orion-plan.orion-plan table.o-tree td:nth-child(3) { white-space: normal; min-width: 220px; }
.orion-plan.orion-plan table.o-tree td.o-number { color: #8c959f; text-align: right; }
.orion-plan.orion-plan table.o-tree details { margin: 0; }
.orion-plan.orion-plan table.o-tree .o-badge code { color: inherit; font-size: 11px; }
.orion-plan.orion-plan .o-scroll { overflow-x: auto; }
.orion-plan.orion-plan mark { color: inherit; background: #dbeafe; border-radius: 2px; padding: 1px 0; }
.orion-plan.orion-plan mark.o-written { background: #ffd8b5; font-weight: 600; }
.orion-plan.orion-plan .o-badge { display: inline-block; border-radius: 10px; padding: 0 8px; font-size: 11.5px;
  font-weight: 600; line-height: 1.6; border: 1px solid; vertical-align: 1px; font-family: system-ui, sans-serif; }
.orion-plan.orion-plan .o-parallel { color: #0b5394; background: #e7f1fb; border-color: #9cc4ea; }
.orion-plan.orion-plan .o-partly { color: #6a5500; background: #fbf6dc; border-color: #dccb74; }
.orion-plan.orion-plan .o-serial { color: #8a3b00; background: #fff1e5; border-color: #f0b487; }
.orion-plan.orion-plan .o-faint { color: #59636e; }
.orion-plan.orion-plan .o-blocker { border-left: 3px solid #f0b487; padding: 1px 0 1px 12px; margin: 8px 0 12px; }
.orion-plan.orion-plan .o-place { color: #59636e; font-size: 12px; font-weight: 400; padding-left: 8px; }
.orion-plan.orion-plan .o-remark { color: #59636e; padding-left: 16px; }
.orion-plan.orion-plan details { margin-top: 12px; }
.orion-plan.orion-plan summary { cursor: pointer; color: #59636e; }
""".strip()
"""Colours: blue for what is read and parallel, orange for what is written and serial, yellow between; words and weight
say it too."""
