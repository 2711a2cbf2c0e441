"""Calls of functions: Python's, `math`'s, NumPy's, methods of arrays, and the user's helpers."""

from __future__ import annotations

from dataclasses import replace

from orion.ir.constants import constant_value
from orion.ir.nodes import INTEGER, NARROW, Call, Const, Dtype, Expr, Subscript, Tuple, Var, Word
from orion.kernel.emit.code import ATOM, Code, call, number, numpy_name
from orion.kernel.emit.draws import arranged
from orion.kernel.emit.subscripts import Subscripts
from orion.typing.functions import Form, Own, form_of, known, takes_floats
from orion.typing.value_type import INT, ValueType

CONVERSIONS = {"int": "int64", "float": "float64", "bool": "bool", "complex": "complex128"}
ROUNDINGS = frozenset({"math.floor", "math.ceil", "math.trunc"})
CHECKED = "orion:checked"
"""`CHECKED(array, axis, subscript)`: the subscript counted from the start of the axis; ends the walk if it is
outside."""


def numpys(name: str, kind: ValueType) -> str:
    """What computes NumPy's function of elements where the result is of that type.

    >>> numpys("np.sign", ValueType("float64")), numpys("np.sign", INT), numpys("np.exp", ValueType("float64"))
    ('sign_of', 'np.sign', 'np.exp')
    """
    row = known(name)
    own = Own.NEVER if row is None else row.own
    is_own = own is Own.ALWAYS or (own is not Own.NEVER and kind.dtype.startswith("float"))
    return f"{name.removeprefix('np.')}_{'each' if kind.rank else 'of'}" if is_own else name


class Calls(Subscripts):
    """Emits calls as what Numba knows them by."""

    def call(self, expr: Call) -> Code:
        name = expr.function
        if name == CHECKED:
            return self.checked_subscript(expr)
        if name == NARROW:
            return self.expression(expr.arguments[0])
        if name == INTEGER:
            return self.bound(expr.arguments[0])
        kind = self.type_of(expr)
        if name == ".conj" and not kind.rank:  # Numba's numbers have the other name
            return self.by_form(replace(expr, function=".conjugate"), kind)
        if name == "abs" and kind.rank:
            return self.elementwise(replace(expr, function="np.abs"))
        if name.startswith("helper:"):
            return self.helper_call(expr)
        if name == ".astype":
            return self.astype(expr)
        if name in ("min", "max", "np.minimum", "np.maximum") and kind.rank == 0 and len(expr.arguments) > 1:
            arguments = [self.operand(argument, kind.dtype) for argument in expr.arguments]
            return self.narrowed(call(numpys(name, kind), *arguments, dtype=kind.dtype), kind)
        if name == "np.clip" and not expr.keywords:
            value, least, most = (self.operand(argument, kind.dtype) for argument in expr.arguments)
            found = call(numpys("np.maximum", kind), value, least, dtype=kind.dtype)
            found = call(numpys("np.minimum", kind), found, most, dtype=kind.dtype)
            return self.narrowed(found, kind)
        return self.by_form(expr, kind)

    def by_form(self, expr: Call, kind: ValueType) -> Code:
        """A call as its row of `orion.typing.functions` has it."""
        name = expr.function
        match form_of(name):
            case Form.CONVERSION:
                return self.conversion(expr, CONVERSIONS.get(name, name.removeprefix("np.")))
            case Form.MATH:
                return self.of_math(expr, kind)
            case Form.NEW:
                return self.new_array(expr)
            case Form.ATTRIBUTE:
                return self.attribute(expr, kind)
            case Form.PRODUCT if len(expr.arguments) == 2:
                return self.product(*expr.arguments, kind)
            case Form.ELEMENTS:
                return self.elementwise(expr)
            case Form.KEYED:
                return self.keyed(expr, kind)
            case _:
                return self.other(expr)

    def attribute(self, expr: Call, kind: ValueType) -> Code:
        """An attribute of an array; of a shape, perhaps one extent alone."""
        owner, *axis = expr.arguments
        item = f"[{constant_value(axis[0])}]" if axis else ""
        return Code(f"{self.expression(owner).at(ATOM)}.{expr.function.removeprefix('attribute:')}{item}", kind.dtype)

    def of_math(self, expr: Call, kind: ValueType) -> Code:
        """A function of `math`: of floats, but for those that take integers as they are."""
        kinds = [self.type_of(argument) for argument in expr.arguments]
        if expr.function in ROUNDINGS and kinds[0].weak and kinds[0].is_integer:
            return self.operand(expr.arguments[0], kind.dtype)
        dtype = "int64" if expr.function == "math.gcd" else "float64"
        arguments = [self.operand(argument, dtype) for argument in expr.arguments]
        return call("np.fmod" if expr.function == "math.fmod" else expr.function, *arguments, dtype=kind.dtype)

    def keyed(self, expr: Call, kind: ValueType) -> Code:
        """A random number by key."""
        given = [self.operand(argument, "int64").text for argument in expr.arguments]
        called, first, count, keys, has_limits = arranged(expr.function, given, "int64(0)")
        site = [str(self.site("", expr.span))] if has_limits else []
        return call(called, *first, str(count), f"({', '.join(keys)})", *site, dtype=kind.dtype)

    def type_of(self, expr: Expr) -> ValueType:
        return INT if isinstance(expr, Call) and expr.function == CHECKED else super().type_of(expr)

    def checked_subscript(self, expr: Call) -> Code:
        array, axis, index = expr.arguments
        assert isinstance(array, Var)
        code = self.checked_index(Subscript(array, (), expr.span), constant_value(axis) or 0, self.expression(index))
        return call("int64", code, dtype="int64")

    def elementwise(self, expr: Call) -> Code:
        """A NumPy function of each element: Python scalars among its arguments take the dtype of the others."""
        kind = self.type_of(expr)
        kinds = [self.type_of(argument) for argument in expr.arguments]
        strong = {k.dtype for k in kinds if not k.weak}
        meets = next(iter(strong)) if len(strong) == 1 else None
        arguments = []
        for argument, own in zip(expr.arguments, kinds, strict=True):
            if (
                kind.dtype.startswith("float")
                and not own.is_complex
                and (not own.is_integer or takes_floats(expr.function))
            ):
                arguments.append(self.operand(argument, kind.dtype))
            elif own.weak and meets is not None:
                arguments.append(self.operand(argument, meets))
            else:
                arguments.append(self.expression(argument))
        if expr.function == "np.sign" and kind.dtype.startswith("uint"):  # Numba takes the highest bit for a sign
            return self.converted(Code(f"({arguments[0].text} != 0)", "bool"), kind.dtype, kind.rank)
        return call(numpys(expr.function, kind), *arguments, dtype=kind.dtype)

    def conversion(self, expr: Call, dtype: str) -> Code:
        if not expr.arguments:
            return number(0, dtype)
        if expr.function == "complex" and len(expr.arguments) == 2:
            return call("complex", *(self.operand(part, "float64") for part in expr.arguments), dtype=dtype)
        return self.operand(expr.arguments[0], dtype)

    def astype(self, expr: Call) -> Code:
        kind = self.type_of(expr)
        if not kind.rank:
            return self.conversion(expr, kind.dtype)
        owner = self.expression(expr.arguments[0])
        return Code(f"{owner.at(ATOM)}.astype(np.{numpy_name(kind.dtype)})", kind.dtype)

    def new_array(self, expr: Call) -> Code:
        """np.zeros and its kin, with the dtype spelt out."""
        dtype = self.type_of(expr).dtype
        positions = 2 if expr.function == "np.full" else 1
        arguments = [self.argument(argument) for argument in expr.arguments[:positions]]
        arguments += [self.argument(value) for key, value in expr.keywords if key in ("shape", "fill_value")]
        return call(expr.function, *arguments, f"np.{numpy_name(dtype)}", dtype=dtype)

    def other(self, expr: Call) -> Code:
        """A function whose result Numba types as NumPy does, converted where it does not."""
        kind = self.type_of(expr)
        arguments = [self.argument(argument) for argument in expr.arguments]
        row = known(expr.function)
        if row is not None and row.needs_elements:
            arguments[0] = f"with_elements({arguments[0]}, {self.site('', expr.span)})"
        if expr.function == "np.linalg.norm" and not self.type_of(expr.arguments[0]).dtype.startswith("float"):
            arguments[0] = f"({arguments[0]}).astype(np.float64)"  # as NumPy does; Numba takes floats alone
        arguments += [f"{key}={self.argument(value)}" for key, value in expr.keywords]
        if expr.function.startswith("."):
            owner = self.expression(expr.arguments[0]).at(ATOM)
            code = Code(f"{owner}{expr.function}({', '.join(arguments[1:])})", kind.dtype)
        else:
            called = f"{expr.function}_of_row" if expr.function in ("min", "max") else expr.function
            if expr.function == "np.trace":  # Numba's takes floats alone
                called, arguments = "np.sum", [f"np.diag({arguments[0]})"]
            code = call(called, *arguments, dtype=kind.dtype)
        is_sure = kind.rank > 0 or kind.dtype in ("float64", "int64", "bool", "none")
        return code if is_sure else call(kind.dtype, code, dtype=kind.dtype)

    def argument(self, expr: Expr) -> str:
        if isinstance(expr, Word):
            return repr(expr.value)
        if isinstance(expr, Dtype):
            return f"np.{numpy_name(expr.name)}"
        if isinstance(expr, Const) and expr.value is None:
            return "None"
        if isinstance(expr, Tuple):
            items = ", ".join(code.text for code in map(self.expression, expr.items))
            return f"({items},)"
        return self.expression(expr).text

    def helper_call(self, expr: Call) -> Code:
        """A call of the user's function, which stands in the same module."""
        arguments = [self.expression(argument) for argument in expr.arguments]
        name = self.names.user(expr.function.removeprefix("helper:"))
        kind = self.type_of(expr)
        return self.sure(call(name, *arguments, dtype=kind.dtype), kind)

    def sure(self, code: Code, kind: ValueType) -> Code:
        """What Numba computes, with its own rules, inside a function, as the dtype that NumPy gives."""
        if kind.dtype in ("tuple", "none") or kind.dtype == "float64":
            return code
        if kind.rank > 0:
            return Code(f"{code.at(ATOM)}.astype(np.{numpy_name(kind.dtype)})", kind.dtype)
        return call(f"np.{numpy_name(kind.dtype)}" if kind.dtype == "bool" else kind.dtype, code, dtype=kind.dtype)
