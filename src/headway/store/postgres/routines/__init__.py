"""Functions in the database, one a file. They are made anew with every version of the schema."""
