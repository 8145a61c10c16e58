"""From folders of documents to passages: extraction of texts, titles and page numbers; passages with stable ids."""
