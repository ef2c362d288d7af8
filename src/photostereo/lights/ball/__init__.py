"""Light directions from a shiny or matte ball."""
