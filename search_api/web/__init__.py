"""The web page at `/`: files that a browser runs, served before any key is asked for. All it shows comes from `/v1`."""
