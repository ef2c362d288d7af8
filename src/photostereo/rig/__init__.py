"""A camera and lights that stay where they are: part after part in milliseconds."""
