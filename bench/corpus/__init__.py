"""Every graph of a folder through the main job: what comes out right, wrong, refused."""
