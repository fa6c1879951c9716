"""Resources and their templates."""
