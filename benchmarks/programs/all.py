"""All twenty programs, by subject."""

from .fluids import FLUIDS
from .learning import LEARNING
from .program import Program
from .science import SCIENCE

PROGRAMS: tuple[Program, ...] = (*FLUIDS, *LEARNING, *SCIENCE)
