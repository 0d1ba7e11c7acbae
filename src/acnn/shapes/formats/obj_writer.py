"""Writing OBJ and MTL."""

from __future__ import annotations

from acnn.shapes.shape import Mesh

MATERIAL = "surface"


def write_obj(mesh: Mesh, library: str | None = None) -> bytes:
    """The bytes of an OBJ file: coordinates with all digits, colours as x y z r g b in 0..1, indices 1-based.

    - library: the name of the MTL file beside it
    """
    text = []
    if library:
        text.append(f"mtllib {library}\nusemtl {MATERIAL}\n")
    if mesh.colors is None:
        text.append("v %r %r %r\n" * len(mesh.vertices) % tuple(mesh.vertices.ravel().tolist()))
    else:
        # Four digits tell 256 steps apart with room to spare. Alpha is written only where it says something.
        columns = 3 if (mesh.colors[:, 3] == 255).all() else 4
        rows = zip(mesh.vertices.tolist(), (mesh.colors[:, :columns] / 255).tolist(), strict=True)
        form = "v %r %r %r" + " %.4f" * columns + "\n"
        text.append(form * len(mesh.vertices) % tuple(x for p, c in rows for x in (*p, *c)))
    faces = mesh.faces + 1
    if mesh.texture is None:
        text.append("f %d %d %d\n" * len(faces) % tuple(faces.ravel().tolist()))
    else:
        text.append("vt %r %r\n" * len(mesh.texture.uv) % tuple(mesh.texture.uv.ravel().tolist()))
        rows_of_uv = (mesh.texture.uv_faces + 1).ravel().tolist()
        pairs = zip(faces.ravel().tolist(), rows_of_uv, strict=True)
        text.append("f %d/%d %d/%d %d/%d\n" * len(faces) % tuple(x for pair in pairs for x in pair))
    return "".join(text).encode("utf-8")


def write_mtl(picture: str) -> bytes:
    """The bytes of the MTL file that gives an OBJ file its picture."""
    return f"newmtl {MATERIAL}\nKd 1 1 1\nillum 1\nmap_Kd {picture}\n".encode()
