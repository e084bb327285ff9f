"""A customer of the shop: buys a book at home and a vase abroad."""

from shop import order

order.apply_async(["book"], exchange="shop", routing_key="order.home.book")
order.apply_async(["vase"], exchange="shop", routing_key="order.abroad.vase")
