"""Texts of `tests.hint_sites` whose cures no program of `tests.cured_programs` applies, by their beginnings."""

NO_CURE = {
    "frontend/locate.py: import the module anew: `importlib.reload`, after `__pycache__` ":
        "it is about the process, not about the program",
    "frontend/locate.py: define the function in a file or in a notebook cell":
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
ELSEWHERE = {
    "typing/infer.py: {}; or `{}.setflags(write=True)` where it owns its data":
        "test_argument_cures.py::test_a_read_only_array",
    "reasons.py: make the subscript a loop variable: loop over a sparse array tha": REASONS,
    "reasons.py: write the subscript as a sum of loop variables and constants, or": REASONS,
    "reasons.py: bind the name once, to one row": REASONS,
    "reasons.py: compute the bounds from the loop variables, as for rows of one l": REASONS,
    "reasons.py: pass the bound as an argument, or compute it from arguments and ": REASONS,
    "reasons.py: simpler subscripts, or a loop for each statement, may be looked ": REASONS,
    "reasons.py: find the first iteration that leaves in a loop of its own, `if …": REASONS,
}  # fmt: skip
"""Those that other tests apply → the test."""

NOT_TRIED = {
    "frontend/accumulators.py: write it out",
    "frontend/bars.py: write a number, a string, True or False",
    "frontend/bars.py: write what it goes through first, and options by name: `tqdm(ran",
    "frontend/buffers.py: return the new value of the element, or a tuple of that and of t",
    "frontend/locate.py: write the loop in a plain function, `def name(arguments): …`",
    "frontend/parse.py: decorate a plain function",
    "frontend/parse.py: name every parameter",
    "frontend/parse.py: write `def name(arguments): …`",
    "frontend/parse_calls.py: pass the columns that the loop uses as arrays, such as `{}['x'].",
    "frontend/parse_expressions.py: pass one; an array of `orion.sparse` is gone through by rows, `f",
    "frontend/parse_expressions.py: pass what is looked up by strings as arrays of their own: of a d",
    "frontend/parse_statements.py: write `for (i, j), value in {}:`, with as many keys as the array",
    "frontend/replicas.py: write `{}[…] = …`, or use another name",
    "frontend/ufunc_methods.py: write `{}(…, axis=0)`",
    "frontend/ufunc_methods.py: write it as a loop, or call it before the loop",
    "passes/accumulated.py: give an `init` of the kind of what is added: 0.0, not 0, for flo",
    "passes/after_loops.py: keep it under another name: `last = {}` in the loop",
    "passes/array_states.py: copy elements instead, `u[:] = new`, or use one more name",
    "passes/between.py: put it at the top level of the function, or into an `if`, a `whi",
    "passes/element_stores.py: put the loops over the rows or columns of `{}` in a function of ",
    "passes/element_stores.py: store one number",
    "passes/element_stores.py: use another name for the other value",
    "passes/element_stores.py: write `{}[{}]` in a loop `for {}, value in {}:`",
    "passes/element_stores.py: write `{}`",
    "passes/element_stores.py: write a loop over its elements here, or call the function elsewh",
    "passes/literal_arrays.py: give it a name first",
    "passes/unmade_arrays.py: return the array too",
    "passes/unpacking.py: use subscripts",
    "passes/unpacking.py: write them one by one",
    "typing/call_types.py: assign the result, `a[:] = …`",
    "typing/call_types.py: write it with operators, other functions or a loop",
    "typing/complex_types.py: leave it out",
    "typing/complex_types.py: use their parts, `z.real` and `z.imag`",
    "typing/complex_types.py: write `complex(x, y)`",
    "typing/complex_types.py: write `x + 1j * y`",
    "typing/complex_types.py: write `z.real`, or `abs(z)`",
    "typing/expression_types.py: leave subscripts out",
    "typing/expression_types.py: use numbers, and arrays of numbers",
    "typing/expression_types.py: write a loop in the decorated function, `for (i, j), value in {}",
    "typing/functions.py: the default method is the one that is known",
    "typing/infer.py: give it a value before the loop, or before its first use",
    "typing/infer.py: to swap two arrays, write the loops for both directions, or copy",
    "typing/infer.py: update it element by element",
    "typing/infer.py: write `for ({}), {} in {}:`",
    "typing/infer.py: write `for i in range(len({})):`, or make it with orion.sparse",
    "typing/infer.py: write `{}[i, j] = …` in a loop `for (i, j), value in {}:`, or wr",
    "typing/infer.py: write its elements, `{}[:] = …`, or use another name",
    "typing/infer.py: write its items one by one",
    "typing/infer.py: write rows of an array, `a[i] = …`",
    "typing/results.py: give it one",
    "typing/results.py: write its arguments by position",
}  # fmt: skip
"""Those that nothing applies yet."""
