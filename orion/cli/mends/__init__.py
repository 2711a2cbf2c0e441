"""`orion explain --fix`: the mends that hints of serial loops ask for, where they can be made by rule."""
