"""Skills: folders of instructions that clients read as resources."""
