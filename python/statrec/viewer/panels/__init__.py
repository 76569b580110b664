"""The panels of the page, one file each, in the order of this table."""
from .depth import Depth
from .features import Features, Step
from .losses import Losses
from .own import Own
from .runs import RunsPanel
from .site import Site
from .spectra import Spectra
from .verdict import VerdictPanel

PANELS = (VerdictPanel, Losses, Depth, Site, Features, Step, RunsPanel, Spectra, Own)
