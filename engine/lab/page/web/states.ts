// Reads the engine's answer to `play`; parts.h describes the numbers (states_of()).
import type { Answer, Json } from './engine';
import { runs } from './format';

export interface Cell {
  complete: boolean;
  needed: boolean;
  written: boolean;
  twice: boolean;
  ranks: number[]; // ranks that have contributed
}

export class States {
  readonly json: Json;
  readonly ranks: number;
  readonly places: number;
  readonly rounds: number;
  private readonly numbers: ArrayLike<number>;
  private readonly width: number;

  constructor(answer: Pick<Answer, 'json' | 'numbers'>) {
    this.json = answer.json;
    this.ranks = this.json.ranks;
    this.places = this.json.blocks * this.json.planes;
    this.rounds = this.json.transfers.length;
    this.numbers = answer.numbers;
    this.width = 1 + this.json.words;
  }

  /** The cell after this number of rounds. */
  cell(rounds: number, rank: number, place: number): Cell {
    const at = ((rounds * this.ranks + rank) * this.places + place) * this.width;
    const flags = this.numbers[at];
    const ranks: number[] = [];
    for (let r = 0; r < this.ranks; ++r) {
      if ((this.numbers[at + 1 + (r >> 5)] >>> (r & 31)) & 1) ranks.push(r);
    }
    return { complete: !!(flags & 1), needed: !!(flags & 2), written: !!(flags & 4), twice: !!(flags & 8), ranks };
  }

  phase(round: number): string {
    let end = 0;
    for (const phase of this.json.phases) {
      end += phase.rounds;
      if (round < end) return phase.name;
    }
    return '';
  }

  text(cell: Cell): string {
    if (cell.ranks.length === 0) return '';
    if (cell.complete && cell.ranks.length > 1 && cell.ranks.length === this.ranks) return 'all';
    return runs(cell.ranks) + (cell.twice ? ' twice' : '');
  }
}
