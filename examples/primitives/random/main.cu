// Random words, uniform numbers and normal ones, each made from its index; and
// pi, from how many random points lie in the quarter of a circle.
#include <array>
#include <cstring>

#include "cpp/host.cuh"
#include "primitives/random/fill.cu"
#include "primitives/random/monte_carlo.cu"

// Philox on the host: the four words of an index of this seed and stream.
std::array<unsigned, 4> words(unsigned long long index, unsigned long long seed,
                              unsigned long long stream) {
  using Long = unsigned long long;
  unsigned a = index, b = index >> 32, c = stream, d = stream >> 32;
  unsigned k = seed, l = seed >> 32;
  for (int round = 0; round < 10; ++round, k += 0x9E3779B9, l += 0xBB67AE85) {
    const Long x = (Long)0xD2511F53 * a, y = (Long)0xCD9E8D57 * c;
    a = (unsigned)(y >> 32) ^ b ^ k;
    b = (unsigned)y;
    c = (unsigned)(x >> 32) ^ d ^ l;
    d = (unsigned)x;
  }
  return {a, b, c, d};
}

int main() {
  const unsigned long long seed = 0x123456789abcdef, stream = 5;
  const long long n = 20'000'003;
  std::vector<unsigned> as_words;
  for (long long i = 0; 4 * i < n; ++i)
    for (unsigned word : words(i, seed, stream)) as_words.push_back(word);
  std::vector<double> as_uniform, as_normal;
  for (unsigned word : as_words) {
    // The upper 24 bits of those that it has.
    int cut = 0;
    while (word >> cut >= 1u << 24) ++cut;
    as_uniform.push_back((word >> cut << cut) * 0x1p-32);
  }
  for (size_t i = 0; i < as_words.size(); i += 2) {
    const double pi = std::acos(-1.0);
    const float u = (float)((float)as_words[i] * 0x1p-32 + 0x1p-33);
    const double turn = (float)(int)as_words[i + 1] * 0x1p-31;
    const double radius = std::sqrt(-2 * std::log((double)u));
    const double half = std::abs(turn);  // sines of small angles are exact
    const double sine = std::sin(pi * std::min(half, 1 - half));
    as_normal.push_back(radius * std::sin(pi * (0.5 - half)));
    as_normal.push_back(radius * std::copysign(sine, turn));
  }

  Array<unsigned> out(n);
  const auto run = [&](const char* name, auto type, auto wanted, double rtol,
                       int each, auto kernel) {
    const unsigned grid = (n + 4 * each * BLOCK - 1) / (4 * each * BLOCK);
    const auto launch = [&] { kernel<<<grid, BLOCK>>>(out, n, seed, stream); };
    MUST(cudaMemset(out, 0xff, out.bytes()));
    launch();
    MUST(cudaGetLastError());
    std::vector<decltype(type)> got(n);
    std::memcpy(got.data(), out.host().data(), out.bytes());
    wanted.resize(n);
    check(name, got, wanted, rtol ? 1e-30 : 0, rtol);
    const double us = time_us(launch);
    std::printf("%-8s %8.1f us, %5.0f GB/s\n", name, us,
                out.bytes() / us / 1e3);
  };
  run("words", 0u, as_words, 0, 4, fill<0, 4, BLOCK>);
  run("uniform", 0.0f, as_uniform, 0, 4, fill<1, 4, BLOCK>);
  // The roundings of the logarithm, the root, the sine and their product.
  run("normal", 0.0f, as_normal, 6 * 0x1p-24, 8, fill<2, 8, BLOCK>);

  int sms = 0;
  MUST(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  const long long points = n / 2;
  long long inside = 0;
  for (const double* u = as_uniform.data(); u < &as_uniform[2 * points]; u += 2)
    inside += u[0] * u[0] + u[1] * u[1] < 1;
  Array<unsigned long long> hits(1);
  hits.zero();
  count_pi<<<8 * sms, BLOCK>>>(hits, points, seed, stream);
  MUST(cudaGetLastError());
  // In fp32 a point that is 2^-23 or less from the circle may lie beyond it:
  // two or three of ten million, and hardly ever twenty.
  check("hits", hits.host(), std::vector<long long>{inside}, 20);
  const double share = (double)hits.host()[0] / points;
  std::printf("pi is %.5f, give or take %.5f\n", 4 * share,
              4 * std::sqrt(share * (1 - share) / points));

  // What the right to buy for 105 is worth on average, of what is worth 100
  // today.
  const float drift = 0.01f, spread = 0.2f;
  const long long pieces = (n + PIECE - 1) / PIECE;
  double payoffs = 0;
  for (long long i = 0; i < n; ++i)
    payoffs += std::max(
        100 * std::exp((double)drift + (double)spread * as_normal[i]) - 105,
        0.0);
  Array<double> sums(2 * pieces), totals(2);
  const auto launch = [&] {
    price<false><<<std::min<long long>(pieces, 8 * sms), BLOCK>>>(
        sums, n, 100, 105, drift, spread, seed, stream);
    add_pieces<<<1, BLOCK>>>(sums, totals, pieces);
  };
  launch();
  MUST(cudaGetLastError());
  const double sum = totals.host()[0];
  // Ten roundings in fp32 of what is a few times as large as a payoff.
  check("payoffs", std::vector<double>{sum}, std::vector<double>{payoffs}, 0,
        40 * 0x1p-24);
  std::printf("it is worth %.4f: %.1f us\n", sum / n, time_us(launch));
}
