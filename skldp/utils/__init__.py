"""Tools for whoever extends skldp."""
