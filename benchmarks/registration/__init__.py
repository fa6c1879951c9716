"""Programs that time the registration of many tools in their own process."""
