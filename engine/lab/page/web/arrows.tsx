// Draws a round's messages as arrows between ranks.
import type { Json } from './engine';
import { fitting, positions } from './layout';
import { Canvas, colour } from './parts';
import type { States } from './states';

const mostDrawn = 32; // largest number of ranks for SVG; above it a canvas

/** Draws the transfers of a round, or with `block` the transfers of that block in all rounds; `pick` makes ranks buttons. */
export function Arrows(props: { states: States; round: number; layout: string; rank: number; pick?: (rank: number) => void; block?: number }) {
  const { states, round, block, pick } = props;
  const layout = props.layout === 'auto' ? fitting(states) : props.layout;
  const place = positions(layout, states, block).map(([x, y]) => [x * 400, y * 400]);
  const radius = Math.max(4, Math.min(17, 440 / states.ranks));
  const transfers: Json[] = block !== undefined ? states.json.transfers.flat().filter((t: Json) => t.what.includes(block)) : round > 0 ? states.json.transfers[round - 1] : [];
  const label = block === undefined ? `round ${round} of ${states.rounds}: ${transfers.length} transfers` : `the way of block ${block}: ${transfers.length} transfers`;
  const pairs = transfers.flatMap((t) => t.from.flatMap((from: number) => t.to.map((to: number) => ({ from, to, act: t.act, what: t.what })))).filter((p: any) => p.from !== p.to);
  const mine = (p: any) => props.rank < 0 || p.from === props.rank || p.to === props.rank;
  if (states.ranks > mostDrawn) {
    return (
      <Canvas height={(width) => Math.min(width, 460)} label={label} draw={(g, width, height) => {
        const side = Math.min(width, height);
        const at = (r: number) => [(width - side) / 2 + (place[r][0] / 400) * side, (place[r][1] / 400) * side];
        for (const p of pairs) {
          const [ax, ay] = at(p.from), [bx, by] = at(p.to);
          g.strokeStyle = colour(p.act === 'reduce' ? 'reduce' : 'copy');
          g.globalAlpha = mine(p) ? 0.8 : 0.15;
          g.beginPath();
          g.moveTo(ax, ay);
          g.lineTo(bx, by);
          g.stroke();
        }
        g.globalAlpha = 1;
        g.fillStyle = colour('ink');
        for (let r = 0; r < states.ranks; ++r) {
          const [x, y] = at(r);
          g.beginPath();
          g.arc(x, y, r === props.rank ? 5 : 2.5, 0, 7);
          g.fill();
        }
      }} />
    );
  }
  const path = (from: number, to: number) => {
    const [ax, ay] = place[from], [bx, by] = place[to];
    const length = Math.hypot(bx - ax, by - ay) || 1;
    const ux = (bx - ax) / length, uy = (by - ay) / length;
    // Bend a little to the right, so that the arrows of two ranks that exchange do not overlap.
    const bend = layout === 'tree' ? 0 : layout === 'circle' ? Math.min(26, length * 0.12) : Math.min(90, length * 0.35);
    const cx = (ax + bx) / 2 - uy * bend, cy = (ay + by) / 2 + ux * bend;
    const ex = bx - cx, ey = by - cy, e = Math.hypot(ex, ey) || 1;
    const sx = cx - ax, sy = cy - ay, s = Math.hypot(sx, sy) || 1;
    return `M${ax + (sx / s) * radius},${ay + (sy / s) * radius} Q${cx},${cy} ${bx - (ex / e) * (radius + 7)},${by - (ey / e) * (radius + 7)}`;
  };
  return (
    <svg class="arrows" viewBox="-10 -10 420 420" role={pick ? 'group' : 'img'} aria-label={label}>
      <defs>
        {['copy', 'reduce'].map((act) => (
          <marker id={'head-' + act} viewBox="0 0 8 8" refX="2" refY="4" markerWidth="4.5" markerHeight="4.5" orient="auto"><path class={act + ' head'} d="M0,0 L8,4 L0,8 z" /></marker>
        ))}
      </defs>
      {pairs.map((p: any) => <path class={'move ' + p.act + (mine(p) ? '' : ' dim')} d={path(p.from, p.to)} marker-end={`url(#head-${p.act})`} />)}
      {place.map(([x, y], r) => (
        <g class={'rank' + (r === props.rank ? ' picked' : '')} {...(pick && {
          role: 'button', tabindex: 0, 'aria-label': `rank ${r}`, 'aria-pressed': r === props.rank,
          onClick: () => pick(r === props.rank ? -1 : r),
          onKeyDown: (e: KeyboardEvent) => (e.key === 'Enter' || e.key === ' ') && (e.preventDefault(), pick(r === props.rank ? -1 : r)),
        })}>
          <circle cx={x} cy={y} r={radius} />
          <text x={x} y={y} dy="0.35em" style={{ fontSize: Math.max(7, radius * 0.85) + 'px' }}>{r}</text>
        </g>
      ))}
    </svg>
  );
}
