"""What people are shown, defined once: tables, figures, pictures and how a number is written, for every renderer."""

from arena.present import markup as markup  # notebooks draw pictures by it
