"""isl sets and maps that were made before: reading isl's text takes longer than most of what is done with it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from orion.sets.affine import Affine
from orion.sets.names import extent_name, isl_name, isl_value, parameter_list
from orion.sets.reader import Reader

if TYPE_CHECKING:
    import islpy as isl

T = TypeVar("T")


class Maps:
    """The isl objects of one analysis by their texts, all in one context. Steps pass it on, and hand on texts alone: it
    ends with the analysis. `plain` are the texts of access relations none of whose subscripts is ever negative."""

    def __init__(self) -> None:
        import islpy as isl

        self._maps: dict[str, isl.Map] = {}
        self._sets: dict[str, isl.Set] = {}
        self._negative: dict[tuple[str, str], bool] = {}
        self._boxes: dict[tuple[str, int], isl.Set] = {}
        self._accesses: dict[tuple[str, tuple[str, ...], str, tuple[str, ...]], isl.Map | None] = {}
        self._places: dict[tuple[str, tuple[str, ...], tuple[Affine, ...]], isl.Map] = {}
        self.plain: set[str] = set()
        self._answers: dict[Hashable, Any] = {}
        self._given_up: dict[str, None] = {}
        self.context = isl.Context()  # the last: islpy frees a context whose own object goes after all others of it
        self._reader = Reader(self.context)

    def once(self, key: Hashable, answer: Callable[[], T]) -> T:
        """What is answered to a question, which the key begins with, at its first call."""
        if key not in self._answers:
            self._answers[key] = answer()
        found: T = self._answers[key]
        return found

    def give_up(self, what: str) -> None:
        """Note what was not found out because it takes too long, and what is taken to be instead."""
        self._given_up[what] = None

    def given_up(self) -> tuple[str, ...]:
        """What was noted since this was asked last."""
        found, self._given_up = tuple(self._given_up), {}
        return found

    def map(self, text: str) -> isl.Map:
        """The map of a text."""
        found = self._maps.get(text)
        if found is None:
            import islpy as isl

            found = self._maps[text] = self._reader.read(text, isl.Map)
        return found

    def set(self, text: str) -> isl.Set:
        """The set of a text."""
        found = self._sets.get(text)
        if found is None:
            import islpy as isl

            found = self._sets[text] = self._reader.read(text, isl.Set)
        return found

    def text(self, relation: isl.Map) -> str:
        """The text of a map, which is the map of it from now on."""
        text = str(relation)
        self._maps.setdefault(text, relation)
        return text

    def text_of_set(self, members: isl.Set) -> str:
        """The text of a set, which is the set of it from now on."""
        text = str(members)
        self._sets.setdefault(text, members)
        return text

    def box(self, array: str, axes: int) -> isl.Set:
        """All elements of an array."""
        if (array, axes) not in self._boxes:
            self._boxes[array, axes] = self._box(array, axes)
        return self._boxes[array, axes]

    def _box(self, array: str, axes: int) -> isl.Set:
        import islpy as isl

        dims = [f"x{axis}" for axis in range(axes)]
        inside = " and ".join(f"0 <= {x} < n{x}" for x in dims) or "true"
        found = self.set(f"{parameter_list(f'n{x}' for x in dims)}{{ [{', '.join(dims)}] : {inside} }}")
        for axis in range(axes):
            found = found.set_dim_name(isl.dim_type.param, axis, extent_name(array, axis))
        return found.set_tuple_name(isl_name(array))

    def access(self, domain: str, dims: tuple[str, ...], array: str, axes: list[Affine]) -> isl.Map | None:
        """{x → array[axes(x)] : x in the domain}, within the array, of subscripts that are never negative there; None
        where one may be, or is no single affine function.

        `dims` are the dimensions of the domain as isl has them. Neither it nor the inputs have a name.
        """
        key = domain, dims, array, tuple([form.text for form in axes])
        if key not in self._accesses:
            self._accesses[key] = self._access(domain, dims, array, axes)
        return self._accesses[key]

    def _access(self, domain: str, dims: tuple[str, ...], array: str, axes: list[Affine]) -> isl.Map | None:
        import islpy as isl

        if any("min(" in form.text or "max(" in form.text for form in axes):
            return None
        function = self.functions("", dims, isl_name(array), axes)
        members = self.set(domain)
        for axis, form in enumerate(axes):
            if self._may_be_negative(domain, members, form, function.get_at(axis)):
                return None
        relation = isl.Map.from_multi_aff(function).intersect_domain(members)
        return relation.intersect_range(self.box(array, len(axes)))

    def places(self, name: str, dims: tuple[str, ...], forms: tuple[Affine, ...]) -> isl.Map:
        """{name[dims] → [forms(dims)]}."""
        import islpy as isl

        key = name, dims, forms
        if key not in self._places:
            self._places[key] = isl.Map.from_multi_aff(self.functions(name, dims, "", forms))
        return self._places[key]

    def functions(self, name: str, dims: tuple[str, ...], target: str, forms: Sequence[Affine]) -> isl.MultiAff:
        """{name[dims] → target[forms(dims)]}. Names of forms that are no dimensions are parameters."""
        import islpy as isl

        names = sorted(frozenset[str]().union(*(form.names for form in forms)).difference(dims))
        if any(form.factors is None for form in forms):
            texts = ", ".join(form.text for form in forms)
            head = f"{parameter_list(names)}{{ {name}[{', '.join(dims)}]"
            return isl.MultiAff(f"{head} -> {target}[{texts}] }}", self.context)
        space = isl.Space.alloc(self.context, len(names), len(dims), len(forms))
        for kind, own in ((isl.dim_type.param, names), (isl.dim_type.in_, dims)):
            for position, one in enumerate(own):
                space = space.set_dim_name(kind, position, one)
        for kind, given in ((isl.dim_type.in_, name), (isl.dim_type.out, target)):
            space = space.set_tuple_name(kind, given) if given else space
        places = {one: (isl.dim_type.param, k) for k, one in enumerate(names)}
        places |= {one: (isl.dim_type.in_, k) for k, one in enumerate(dims)}
        nothing = isl.Aff.zero_on_domain(isl.LocalSpace.from_space(space.domain()))
        found = isl.MultiAff.zero(space)
        for axis, form in enumerate(forms):
            found = found.set_at(axis, self._sum(nothing, form.factors or (), places))
        return found

    def _sum(
        self, nothing: isl.Aff, factors: Sequence[tuple[str, int]], places: Mapping[str, tuple[isl.dim_type, int]]
    ) -> isl.Aff:
        for name, factor in factors:
            value = isl_value(factor, self.context)
            if name:
                nothing = nothing.set_coefficient_val(*places[name], value)
            else:
                nothing = nothing.set_constant_val(value)
        return nothing

    def _may_be_negative(self, domain: str, members: isl.Set, form: Affine, function: isl.Aff) -> bool:
        import islpy as isl

        if form.value is not None:
            return form.value < 0
        key = domain, form.text
        if key not in self._negative:
            self._negative[key] = not isl.Set.from_basic_set(function.neg_basic_set()).intersect(members).is_empty()
        return self._negative[key]
