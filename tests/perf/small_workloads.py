"""Small CPU workloads, whose kernels take a few microseconds to a millisecond, of the families that models are made of: for what needs many of
them (agreement.sh, model_objectives.sh). `python3 small_workloads.py` prints them.
"""

import cpu_workloads as cpu


def made():
    """name -> text."""
    made = [cpu.gemm(f"gemm_{m}x{n}x{k}", m, n, k)
            for m, n, k in ((64, 64, 64), (1, 512, 512), (16, 256, 512), (128, 128, 256), (196, 128, 128), (256, 256, 256), (33, 77, 129), (512, 64, 300))]
    made += [cpu.linear(f"linear_{m}x{n}x{k}", m, n, k) for m, n, k in ((1, 256, 768), (8, 256, 256), (49, 256, 128), (128, 192, 96))]
    made += [cpu.bmm(f"bmm_{b}x{m}x{n}x{k}", b, m, n, k) for b, m, n, k in ((4, 64, 64, 32), (12, 49, 49, 64), (8, 16, 128, 64), (2, 100, 80, 120))]
    made += [cpu.conv(f"conv_{size}x{size}_c{c}_k{k}_{kernel}x{kernel}_s{stride}", (1, size, size, c), k, kernel, stride)
             for size, c, k, kernel, stride in ((14, 32, 32, 3, 1), (28, 16, 32, 3, 1), (28, 64, 64, 1, 1), (7, 128, 64, 1, 1), (56, 3, 16, 3, 2),
                                                (14, 64, 32, 3, 2), (13, 24, 40, 5, 1), (32, 8, 8, 3, 1))]
    made += [cpu.conv(f"dwconv_{size}x{size}_c{c}_{kernel}x{kernel}_s{stride}", (1, size, size, c), c, kernel, stride, groups=c)
             for size, c, kernel, stride in ((14, 64, 3, 1), (28, 32, 3, 1), (28, 96, 3, 2), (14, 48, 5, 1), (56, 16, 3, 1))]
    for family, shapes in ((cpu.softmax, ((64, 128), (128, 197), (16, 1000), (512, 64))), (cpu.layernorm, ((64, 256), (128, 768), (197, 192), (16, 1024))),
                           (cpu.gelu, ((64, 512), (197, 768))), (cpu.chain, ((128, 256), (64, 1000))),
                           (cpu.transpose, ((128, 256), (197, 64)))):
        made += [family(f"{family.__name__}_{m}x{n}", m, n) for m, n in shapes]
    made += [cpu.max_pool(f"max_pool_{size}x{size}_c{c}", (1, size, size, c), 3, 2) for size, c in ((28, 64), (56, 16))]
    return {one.name: one.text for one in made}


if __name__ == "__main__":
    print("\n".join(made().values()), end="")
