"""The images' own tools: `sbom` lists what is in one, `rehearse` builds one's stages without a container engine."""
