"""Texts of `tests.hint_sites` whose cures no program of `tests.cured_programs` applies, by their beginnings."""

NO_CURE = {
    "frontend/locate.py: import the module anew: `importlib.reload`, after `__pycache__` ":
        "it is about the process, not about the program",
    "frontend/locate.py: define the function in a file or in a notebook cell":
        "it is about where the program is kept",
    "frontend/locate.py: put the file back, or install the package with its sources":
        "it is about where the program is kept",
    "frontend/refusals.py: collect the data into arrays before the call":
        "generators and coroutines are refused before",
    "frontend/refusals.py: write the values into an array that is an argument":
        "generators and coroutines are refused before",
    "frontend/refusals.py: await before the call, and pass the result as an argument":
        "generators and coroutines are refused before",
}  # fmt: skip
"""Those that cannot be applied to a program → why."""

REASONS = "test_inspect_hints.py::test_what_the_hint_says_is_parallel_and_gives_the_same"
FOREIGN = "test_foreign_arrays.py::test_what_is_to_be_passed_is_taken"
ELSEWHERE = {
    "ir/foreign_cures.py: pass the number, `{}`": FOREIGN,
    "ir/foreign_cures.py: pass `{}.detach()`, which is the same memory": FOREIGN,
    "typing/infer.py: {}; or `{}.setflags(write=True)` where it owns its data":
        "test_argument_cures.py::test_a_read_only_array",
    "passes/element_stores.py: put the loops over the rows or columns of `{}` in a function of ":
        "test_cures.py::test_rows_of_stored_elements_are_gone_through_in_a_function_of_their_own",
    "reasons.py: make the subscript a loop variable: loop over a sparse array tha": REASONS,
    "reasons.py: write the subscript as a sum of loop variables and constants, or": REASONS,
    "reasons.py: bind the name once, to one row": REASONS,
    "reasons.py: compute the bounds from the loop variables, as for rows of one l": REASONS,
    "reasons.py: pass the bound as an argument, or compute it from arguments and ": REASONS,
    "reasons.py: simpler subscripts, or a loop for each statement, may be looked ": REASONS,
    "reasons.py: find the first iteration that leaves in a loop of its own, `if …": REASONS,
}  # fmt: skip
"""Those that other tests apply → the test."""
