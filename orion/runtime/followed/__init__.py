"""Steps of functions as instructions that the walker follows, without Python between their loops."""
