// Nothing: one source more, for a fault of Meson (see meson.build).
