"""A folder of documents of a company -> texts with titles and page numbers -> passages with ids that last."""
