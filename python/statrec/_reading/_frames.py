"""Run files as pandas and xarray objects; neither is imported before it is asked for."""
from . import _arrays


def _needs(name, what):
    try:
        return __import__(name)
    except ImportError as reason:
        raise ImportError(f"statrec: {what} needs {name}, which does not import: {reason}; "
                          f"`pip install {name}`") from reason


def of_columns(columns, index):
    """DataFrame of Columns, by the one called `index`."""
    pandas = _needs("pandas", "frame()")
    return pandas.DataFrame({name: columns[name] for name in columns}).set_index(index)


def frame(run, scalars, sites, tidy):
    """File.frame."""
    pandas = _needs("pandas", "frame()")
    names = run.scalars if scalars is None else list(scalars)
    chosen = [run.site(site) for site in (run.sites if sites is None else sites)]
    numbers = [site.number for site in chosen]
    values = {name: run.scalar(name)[:, numbers] for name in names}
    build = _tidy if tidy else _wide
    return build(pandas, run.steps["step"], [site.name for site in chosen], values)


def _wide(pandas, steps, sites, values):
    columns = pandas.MultiIndex.from_product([sites, list(values)], names=["site", "statistic"])
    cells = {(site, name): values[name][:, i] for i, site in enumerate(sites) for name in values}
    return pandas.DataFrame(cells, index=pandas.Index(steps, name="step")).reindex(columns=columns)


def _tidy(pandas, steps, sites, values):
    cells = {"step": steps.repeat(len(sites)), "site": list(sites) * len(steps)}
    cells.update((name, value.reshape(-1)) for name, value in values.items())
    return pandas.DataFrame(cells)


def dataset(run):
    """File.dataset."""
    xarray = _needs("xarray", "dataset()")
    numpy = _arrays.numpy()
    scalars = {name: (("step", "site"), run[name]) for name in run.scalars}
    vectors = {name: (("vector_step", "column"), run[name]) for name in run.vectors}
    steps = {name: (("step",), run.steps.lazy(name)) for name in run.steps if name != "step"}
    sites = run.sites.values()
    return xarray.Dataset(
        {name: xarray.Variable(dims, _lazily(xarray, column), {"definition": column.definition})
         for name, (dims, column) in {**steps, **scalars, **vectors}.items()},
        coords={"step": run.steps["step"], "vector_step": run.vector_steps,
                "site": list(run.sites),
                "column_site": ("column", numpy.repeat([site.name for site in sites],
                                                       [site.width for site in sites]))},
        attrs={name: value for name, value in run.info.items() if isinstance(value, str)})


def _lazily(xarray, column):
    """The column as an array of xarray's that is read when its values are wanted."""
    from xarray.backends import BackendArray
    from xarray.core import indexing

    class Backend(BackendArray):
        shape, dtype = column.shape, _arrays.numpy().dtype(column.dtype)

        def __getitem__(self, key):
            return indexing.explicit_indexing_adapter(
                key, self.shape, indexing.IndexingSupport.BASIC, _basic)

    def _basic(key):
        values = column[key if len(key) > 1 else key[0]]
        return values

    return indexing.LazilyIndexedArray(Backend())
