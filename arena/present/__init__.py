"""Tables, figures, pictures and number formats, and the renderers for terminals, pages, reports and files."""
