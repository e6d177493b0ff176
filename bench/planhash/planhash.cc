#include <cstdio>
#include <cstring>
#include "algorithms/catalogue.h"
#include "engine/compile/compile.h"
using namespace rankine;
static std::uint64_t h;
static void mix(std::uint64_t v) { h = (h ^ v) * 0x9E3779B97F4A7C15ull; h ^= h >> 29; }
int main() {
  for (const Algorithm& a : catalogue()) {
    for (int n : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 24, 33, 64}) {
      Params p; p.ranks = n;
      p = a.only_taken(p);
      if (a.refusal(p)) continue;
      for (std::size_t count : {1, 3, 16, 100, 1000, 4096, 16384, 65537, 300000}) {
        for (int in : {0, 1}) for (std::size_t board : {0, 1024}) {
          CompileRequest r; r.algorithm = &a; r.params = p;
          const auto blocks = natural_blocks(a.collective, n);
          r.counts.assign(static_cast<std::size_t>(blocks), std::max<std::size_t>(1, count / static_cast<std::size_t>(blocks)));
          if (blocks == 1) r.counts = {count};
          r.buffers = in ? Buffers::in_place : Buffers::apart; r.board_bytes = board; r.slot_payload = board != 0 ? 48 : 2048;
          auto c = compile(r);
          h = 1;
          if (!c.ok()) mix(std::hash<std::string>()(c.status().text()));
          else { const Plan& q = c->plan; mix((int)q.transport); mix(q.span); mix(q.most_operands);
            for (auto& rp : q.rank) { mix(rp.scratch_bytes);
              for (auto& o : rp.ops) { mix((int)o.code); mix(o.flags); mix(o.operands); mix(o.peer); mix(o.round); mix(o.value); mix((int)o.memory); mix(o.copies); mix(o.offset); mix(o.bytes);}
              for (auto& o : rp.operands) { mix(o.rank); mix((int)o.memory); mix(o.message); mix(o.offset);} 
              for (auto& t : rp.traffic) { mix(t.peer); mix(t.sent); mix(t.received);} } }
          std::printf("%s %s %d %zu %d %zu %016lx\n", std::string(name_of(a.collective)).c_str(), std::string(a.name).c_str(), n, count, in, board, h);
        }
      }
    }
  }
}
