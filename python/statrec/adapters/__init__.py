"""Callbacks for trainers that own the training loop; each imports its library when it is made."""
