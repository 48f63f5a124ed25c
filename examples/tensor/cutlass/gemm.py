"""C = A B with CuTe DSL, the Python way into CUTLASS: bf16, sums in fp32.

    run = prepare(a, b, c)               # uint16 arrays stand for bf16
    run()                                # as often as wanted

A is m x k, B k x n, C m x n, all row-major. The kernel is built like
tma_stores.cu: persistent clusters, one warp that fetches, two warpgroups that
multiply, results that leave through shared memory. Rows have to begin at
multiples of 16 bytes.
"""

import tempfile
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import cudatut as ct
from cudatut.book.tensor.gemm.addresses import address

try:
    import cuda.bindings.driver as driver
    import cutlass
    import cutlass.cute as cute
    from cutlass import BFloat16 as BF16
    from cutlass import Float32, pipeline
    from cutlass.cute.nvgpu import OperandMajorMode, cpasync, warp, warpgroup
    from cutlass.memory import SmemAllocator
    from cutlass.pipeline import Agent, CooperativeGroup
    from cutlass.tensor_utils import LayoutEnum
    from cutlass.utils import hopper_helpers as hopper
except ImportError as error:
    raise ct.ToolMissing(
        f"CuTe DSL cannot be imported ({error}); "
        "`pip install nvidia-cutlass-dsl==4.8.1`"
    ) from error

ROWS, DEPTH, CONSUMERS = 128, 64, 256  # of a tile; of a stage; threads
BOX, BOXES = (128, 64), 2  # of results
LARGEST = 2**31 - 1 - 1024  # of an extent: tiles may reach past it


# --8<-- [start:shape]
class Shape(NamedTuple):
    """Columns of a tile, whose rows are 128; stages in shared memory; blocks of
    a cluster; clusters below each other in the order of tiles.
    """

    columns: int = 256
    stages: int = 4
    cluster: int = 2
    group: int = 4


SHAPE = Shape()
# --8<-- [end:shape]


# --8<-- [start:launch]
@cute.jit
def multiply(
    a, b, c, m, n, k, shape: cutlass.Constexpr, most: cutlass.Constexpr,
    stream: driver.CUstream,
):  # fmt: skip
    """Launch the product; a, b, c: addresses. most: clusters at a time."""
    # --8<-- [start:tensors]
    n, k = cute.assume(n, 8), cute.assume(k, 8)  # multiples
    A = cute.make_tensor(a, cute.make_layout((m, k), stride=(k, 1)))
    B = cute.make_tensor(b, cute.make_layout((n, k), stride=(1, n)))
    C = cute.make_tensor(c, cute.make_layout((m, n), stride=(n, 1)))
    # --8<-- [end:tensors]
    # --8<-- [start:mma]
    mma = hopper.make_trivial_tiled_mma(
        BF16, BF16, OperandMajorMode.K, OperandMajorMode.MN, Float32,
        (2, 1, 1), (64, shape.columns),
    )  # fmt: skip
    # --8<-- [end:mma]
    # --8<-- [start:tma]
    in_a, in_b, in_c = stages(shape)
    fetch = cpasync.CopyBulkTensorTileG2SOp()
    share = fetch
    if cutlass.const_expr(shape.cluster > 1):
        share = cpasync.CopyBulkTensorTileG2SMulticastOp()
    leave = cpasync.CopyBulkTensorTileS2GOp()
    tile, cluster = (shape.columns, DEPTH), shape.cluster
    tma_a = cpasync.make_tiled_tma_atom(fetch, A, in_a, (ROWS, DEPTH))
    tma_b = cpasync.make_tiled_tma_atom(share, B, in_b, tile, cluster)
    tma_c = cpasync.make_tiled_tma_atom(leave, C, in_c, BOX)
    # --8<-- [end:tma]

    rows, columns = cute.ceil_div((m, n), (ROWS * cluster, shape.columns))
    clusters = min(rows * columns, most)
    kernel(
        mma, *tma_a, *tma_b, *tma_c, in_a, in_b, in_c, rows, columns, shape
    ).launch(
        grid=(cluster * clusters, 1, 1), block=(128 + CONSUMERS, 1, 1),
        cluster=(cluster, 1, 1), min_blocks_per_mp=1, stream=stream,
    )  # fmt: skip


# --8<-- [end:launch]


# --8<-- [start:stages]
def stages(shape):
    """Layouts in shared memory: of all stages of A and of B, of boxes of C."""
    tile = ROWS, shape.columns, DEPTH
    along, across = LayoutEnum.ROW_MAJOR, LayoutEnum.COL_MAJOR
    return (
        hopper.make_smem_layout_a(along, tile, BF16, shape.stages),
        hopper.make_smem_layout_b(across, tile, BF16, shape.stages),
        hopper.make_smem_layout_epi(BF16, along, BOX, BOXES),
    )


# --8<-- [end:stages]


@cute.kernel
def kernel(
    mma: cute.TiledMma, load_a: cute.CopyAtom, A: cute.Tensor,
    load_b: cute.CopyAtom, B: cute.Tensor, store: cute.CopyAtom,
    C: cute.Tensor, in_a: cute.ComposedLayout, in_b: cute.ComposedLayout,
    in_c: cute.ComposedLayout, rows: cutlass.Int32, columns: cutlass.Int32,
    shape: cutlass.Constexpr,
):  # fmt: skip
    """rows x columns tiles of clusters; A, B, C: coordinates for the TMA."""
    thread, _, _ = cute.arch.thread_idx()
    warp_id = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
    # --8<-- [start:ring]
    memory = SmemAllocator()
    sA = memory.allocate_tensor(BF16, in_a.outer, 1024, in_a.inner)
    sB = memory.allocate_tensor(BF16, in_b.outer, 1024, in_b.inner)
    sC = memory.allocate_tensor(BF16, in_c.outer, 1024, in_c.inner)
    ring = pipeline.PipelineTmaAsync.create(
        barrier_storage=memory.allocate_array(cutlass.Int64, 2 * shape.stages),
        num_stages=shape.stages,
        producer_group=CooperativeGroup(Agent.Thread),
        consumer_group=CooperativeGroup(Agent.Thread, CONSUMERS),
        tx_count=(ROWS + shape.columns) * DEPTH * 2,
        cta_layout_vmnk=cute.make_layout((1, shape.cluster, 1, 1)),
        enable_multicast_signaling=True,
    )
    producer, consumer = ring.make_participants()
    # --8<-- [end:ring]
    # --8<-- [start:tiles]
    gA = cute.local_tile(A, (ROWS, DEPTH), (None, None))
    gB = cute.local_tile(B, (shape.columns, DEPTH), (None, None))
    gC = cute.local_tile(C, (ROWS, shape.columns), (None, None))
    # --8<-- [end:tiles]
    steps = cute.size(gA, mode=[3])
    first = cute.arch.block_idx()[0] // shape.cluster
    clusters = cute.arch.grid_dim()[0] // shape.cluster

    if warp_id < 4:
        cute.arch.setmaxregister_decrease(40)
    # --8<-- [start:producer]
    if warp_id == 0:
        to_a, from_a = partition(load_a, 0, 1, sA, gA)
        to_b, from_b = partition(load_b, rank, shape.cluster, sB, gB)
        both = None  # who gets the columns of B: this block alone
        if cutlass.const_expr(shape.cluster > 1):
            both = cutlass.Int16((1 << shape.cluster) - 1)
        for tile in range(first, rows * columns, clusters):
            row, column = place_of(tile, rank, rows, columns, shape)
            for step in range(steps):
                stage = producer.acquire_and_advance()
                cute.copy(
                    load_a, from_a[None, row, step], to_a[None, stage.index],
                    tma_bar_ptr=stage.barrier,
                )  # fmt: skip
                cute.copy(
                    load_b, from_b[None, column, step],
                    to_b[None, stage.index],
                    tma_bar_ptr=stage.barrier, mcast_mask=both,
                )  # fmt: skip
        producer.tail()
    # --8<-- [end:producer]

    if warp_id >= 4:
        cute.arch.setmaxregister_increase(232)
        # --8<-- [start:partition]
        t = thread - 128
        mine = mma.get_slice(cute.arch.make_warp_uniform(t // 128) * 128)
        rA = mma.make_fragment_A(mine.partition_A(sA))  # descriptors
        rB = mma.make_fragment_B(mine.partition_B(sB))
        part = mine.partition_shape_C((ROWS, shape.columns))
        sums = cute.make_rmem_tensor(part, Float32)  # registers
        # --8<-- [end:partition]
        # --8<-- [start:tiled-copy]
        matrices = warp.StMatrix8x8x16bOp(transpose=False, num_matrices=4)
        atom = cute.make_copy_atom(matrices, BF16)
        like_sums = cute.make_tiled_copy_C_atom(atom, mma)
        write = cute.make_tiled_copy_S(atom, like_sums)
        to_box = write.get_slice(t).partition_D(sC)
        from_sums = write.retile(sums)
        # --8<-- [end:tiled-copy]
        rounded = cute.make_rmem_tensor(to_box.shape[:3], BF16)
        written = pipeline.NamedBarrier(1, CONSUMERS)
        stores = pipeline.PipelineTmaStore.create(
            num_stages=BOXES,
            producer_group=CooperativeGroup(Agent.Thread, CONSUMERS),
        )
        mma.set(warpgroup.Field.ACCUMULATE, True)
        for tile in range(first, rows * columns, clusters):
            row, column = place_of(tile, rank, rows, columns, shape)
            # --8<-- [start:consumer]
            sums.fill(0.0)
            before = consumer.wait_and_advance()
            products(mma, sums, rA, rB, before.index)
            for _ in range(1, steps):
                stage = consumer.wait_and_advance()
                products(mma, sums, rA, rB, stage.index)
                warpgroup.wait_group(1)
                before.release()
                before = stage
            warpgroup.wait_group(0)
            before.release()
            # --8<-- [end:consumer]
            # --8<-- [start:results]
            boxes = cute.zipped_divide(gC[None, None, row, column], BOX)
            from_box, to_c = partition(store, 0, 1, sC, boxes, 1)
            for i in cutlass.range_constexpr(shape.columns // BOX[1]):
                for j in cutlass.range_constexpr(cute.size(rounded)):
                    at = i * cute.size(rounded) + j
                    rounded[j] = from_sums[at].to(BF16)
                box = i % BOXES
                cute.copy(write, rounded, to_box[None, None, None, box])
                cute.arch.fence_proxy("async.shared", space="cta")
                written.arrive_and_wait()
                if warp_id == 4:
                    cute.copy(store, from_box[None, box], to_c[None, (0, i)])
                    stores.producer_commit()
                    stores.producer_acquire()  # the other box has been read
                written.arrive_and_wait()
            # --8<-- [end:results]
        if warp_id == 4:
            stores.producer_tail()


def partition(atom, rank, blocks, inside, outside, modes=2):
    """Both sides of what the TMA copies for this block of a cluster."""
    return cpasync.tma_partition(
        atom, rank, cute.make_layout(blocks), cute.group_modes(inside, 0, 2),
        cute.group_modes(outside, 0, modes),
    )  # fmt: skip


# --8<-- [start:products]
@cute.jit
def products(mma, sums, a, b, stage):
    warpgroup.fence()
    for i in cutlass.range_constexpr(cute.size(a, mode=[2])):
        at = None, None, i, stage
        cute.gemm(mma, sums, a[at], b[at], sums)
    warpgroup.commit_group()


# --8<-- [end:products]


@cute.jit
def place_of(tile, rank, rows, columns, shape):
    """Row and column of a block's tile, as order.cuh has them."""
    first = tile // (shape.group * columns) * shape.group
    high = min(shape.group, rows - first)
    i = tile - first * columns
    return (first + i % high) * shape.cluster + rank, i // high


@cache
def compiled(shape: Shape, most: int, options: str = "") -> Any:
    """`multiply` for a shape, for any m, n and k; it needs no GPU if the
    variable CUTE_DSL_ARCH names one. most: clusters that run at a time.
    """
    one, stream = cutlass.Int32(8), driver.CUstream(0)
    return cute.compile(
        multiply, *(_pointer(1024),) * 3, one, one, one, shape, most, stream,
        options=options,
    )  # fmt: skip


def kept(shape: Shape) -> SimpleNamespace:
    """The machine code for a shape, to be looked at: `cubin` and `symbol`."""
    with tempfile.TemporaryDirectory() as folder:
        options = f"--keep-cubin --dump-dir {folder}"
        function = compiled(
            shape, ct.device().sm_count // shape.cluster, options
        )
    return SimpleNamespace(
        cubin=function.__cubin__, symbol=next(iter(function.kernel_info))
    )


def prepare(a: Any, b: Any, c: Any, shape: Shape = SHAPE) -> Callable[[], None]:
    """What computes C = A B each time it is called.

    a, b, c: uint16 arrays on the GPU, C-contiguous; C shares no memory with the
    others. Raises TypeError for types, ValueError for shapes that do not fit
    or rows that the TMA cannot read.
    """
    take, wants = ct.operands("cutlass_gemm"), {"most": LARGEST, "align": 16}
    of_a = take.read("A", a, "uint16", (None, None), **wants)
    m, k = of_a.shape
    of_b = take.read("B", b, "uint16", (k, None), **wants)
    n = of_b.shape[1]
    take.write("C", c, "uint16", (m, n), **wants)
    if min(m, n, k) < 1 or n % 8 or k % 8:
        raise ValueError(
            f"n and k have to be multiples of 8, and none may be 0, but the "
            f"product is {m} x {n} x {k}"
        )
    function = compiled(shape, ct.device().sm_count // shape.cluster)
    pointers = [_pointer(address(x)) for x in (a, b, c)]
    extents = [cutlass.Int32(x) for x in (m, n, k)]
    stream = driver.CUstream(0)

    def run() -> None:
        function(*pointers, *extents, stream)

    run.out, run.kept = c, (a, b)  # an address keeps nothing alive
    return run


def _pointer(at: int):
    space = cute.AddressSpace.gmem
    return cute.runtime.make_ptr(BF16, at, space, assumed_align=16)
