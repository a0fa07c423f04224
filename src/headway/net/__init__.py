"""The edge to the network: what may leave this process, and how. Imports nothing of Headway but
its errors."""
