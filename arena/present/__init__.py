"""What people are shown, defined once: tables, figures, pictures and how a number is written, for every renderer."""
