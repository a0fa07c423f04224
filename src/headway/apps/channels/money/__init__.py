"""What calls cost, and what a tenant may spend."""
