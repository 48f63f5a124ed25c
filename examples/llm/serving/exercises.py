# ---
# jupyter:
#   cudatut:
#     requires: sm_80
#     exercises:
#       1:
#         title: {en: "Guess from the text", zh: "根据文本来猜"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             Write `guess(tokens, count)`: if the last two tokens have occurred together before, return the at most
#             `count` tokens that followed the latest such place, else []. The check lets a model that repeats itself
#             generate with and without your guesses: the output must be the same, in fewer steps.
#           zh: >-
#             写出 `guess(tokens, count)`：如果最后两个词元以前这样连着出现过，就返回最近一处后面跟着的至多 `count`
#             个词元，否则返回 []。检查程序让一个爱重复的模型分别猜与不猜，各生成一遍文本：输出必须相同，
#             步数必须更少。
#         fails: "guess"
#       2:
#         title: {en: "A draw that any batch repeats", zh: "结果不受批次影响的采样"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             Write `draw(logits, temperature, seed, request, position)` by Gumbel noise from `sampler.philox`. Token t
#             takes word t % 4 of the counter (t // 4, position, request, 0). A word w becomes v = (w + 0.5) / 2^32,
#             at most 1 - 2^-24, and the noise is -log(-log1p(-v)). Compute in float32. Temperature 0 takes the
#             largest logit. The check compares with our reference, and counts how often each token is drawn.
#           zh: >-
#             用 `sampler.philox` 产生 Gumbel 噪声，写出 `draw(logits, temperature, seed, request, position)`。由计数器
#             (t // 4, position, request, 0) 得到四个 32 位的字，词元 t 取第 t % 4 个。设取到的是 w，先算
#             v = (w + 0.5) / 2^32，至多为 1 - 2^-24，噪声是 -log(-log1p(-v))，都用 float32 计算。温度为 0 时取
#             最大的 logit。检查程序与参考实现比较，并统计每个词元被采到的次数。
#         fails: "(draw|like the reference)"
# ---
# %% stub-1
def guess(tokens, count):
    return []  # yours


# %% stub-2
def draw(logits, temperature, seed, request, position):
    return int(np.argmax(logits))  # yours
