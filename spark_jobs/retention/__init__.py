"""What the lake no longer keeps is removed, and the rest compacted."""
