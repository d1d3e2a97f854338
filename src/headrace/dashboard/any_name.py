"""`{name:anything}` in a route: a name with slashes in it; line ends too, which the library's own path leaves out."""

from starlette.convertors import StringConvertor, register_url_convertor


class Anything(StringConvertor):
    regex = r"[\s\S]+"


register_url_convertor("anything", Anything())
