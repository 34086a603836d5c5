"""Sets of code points, their coarse classes and their byte spellings."""
