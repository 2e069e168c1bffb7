import inspector from 'node:inspector'

/**
 * Counts the work of code instead of its time: runs of each block of `src` (V8's precise coverage), characters and
 * entries that built-in functions read, and bytes allocated, which are the cost of copies. The same work has the same
 * count on every machine.
 */

/** Our code, and that of libraries which read what others send. */
const COUNTED = /\/src\/|\/(?:re2js|htmlparser2|entities|zod|@modelcontextprotocol)\//

type Native = (this: never, ...inputs: never[]) => unknown

let nativeSteps = 0

/** Characters or entries that a built-in function reads. */
type Cost<Self> = (self: Self, inputs: readonly unknown[], result: unknown) => number

const whole: Cost<{ length: number }> = (self) => self.length
const STRING_COSTS: Record<string, Cost<string>> = {
  indexOf: (self, [, from], result) => (result === -1 ? self.length : Number(result)) - Number(from ?? 0),
  lastIndexOf: (self, [, from], result) =>
    Math.min(self.length, Number(from ?? self.length)) - Number(result),
  includes: whole,
  toLowerCase: whole,
  toUpperCase: whole,
  normalize: whole,
  split: whole,
  replace: whole,
  replaceAll: whole,
  match: whole,
  matchAll: whole,
  search: whole,
  trim: (self, _inputs, result) => self.length - String(result).length,
  trimStart: (self, _inputs, result) => self.length - String(result).length,
  trimEnd: (self, _inputs, result) => self.length - String(result).length,
}

/** Functions with a callback run blocks, and those that copy allocate; both are counted by themselves. */
const ARRAY_COSTS: Record<string, Cost<unknown[]>> = {
  splice: (self, [start]) => self.length - Number(start),
  includes: whole,
  indexOf: whole,
  lastIndexOf: whole,
}

/**
 * Built-in functions that copy or read all of their input. They are counted only if a `StepCounter` is configured to.
 */
const LONG_STRING_COSTS: Record<string, Cost<string>> = {
  toWellFormed: whole,
  isWellFormed: whole,
  repeat: (_self, _inputs, result) => String(result).length,
  concat: (_self, _inputs, result) => String(result).length,
}
const COPY_COSTS: Record<string, Cost<unknown[]>> = {
  shift: whole,
  unshift: whole,
  slice: (_self, _inputs, result) => (result as unknown[]).length,
  concat: (_self, _inputs, result) => (result as unknown[]).length,
  join: (_self, _inputs, result) => String(result).length,
  reverse: whole,
  sort: whole,
  toSorted: whole,
  fill: whole,
  flat: (_self, _inputs, result) => (result as unknown[]).length,
}
const lengthOf = (value: unknown): number =>
  typeof value === 'string' || Array.isArray(value) ? value.length : Reflect.ownKeys(Object(value)).length
const OBJECT_COSTS: Record<string, Cost<unknown>> = {
  keys: (_self, [value]) => lengthOf(value),
  values: (_self, [value]) => lengthOf(value),
  entries: (_self, [value]) => lengthOf(value),
  fromEntries: (_self, _inputs, result) => lengthOf(result),
  assign: (_self, [, ...sources]) => sources.reduce<number>((sum, source) => sum + lengthOf(source), 0),
}
const JSON_COSTS: Record<string, Cost<unknown>> = {
  parse: (_self, [text]) => String(text).length,
  stringify: (_self, _inputs, result) => String(result ?? '').length,
}
const bytesOf = (value: unknown): number => (value as { byteLength?: number } | undefined)?.byteLength ?? 0
const BYTES_COSTS: Record<string, Cost<Uint8Array>> = {
  indexOf: whole,
  includes: whole,
  slice: (_self, _inputs, result) => bytesOf(result),
  set: (_self, [source]) => lengthOf(source),
  every: () => 1,
}

/** A search reads up to the end of its match, or to the end of the text; one at a fixed place reads only its match. */
function searchCost(pattern: RegExp, from: number, text: string, end: number | null): number {
  if (end !== null) return end - from
  return pattern.sticky || isAnchored(pattern) ? 1 : text.length - from
}

const anchored = new WeakMap<RegExp, boolean>()

/** Whether a pattern begins with `^`, with no alternative beside it. */
function isAnchored(pattern: RegExp): boolean {
  let known = anchored.get(pattern)
  if (known === undefined) {
    let depth = 0
    known = pattern.source[0] === '^'
    // By hand: the functions of strings and patterns are those that count.
    for (let index = 0; index < pattern.source.length; index++) {
      const sign = pattern.source[index]
      if (sign === '\\') index++
      else if (sign === '(') depth++
      else if (sign === ')') depth--
      else if (sign === '|' && depth === 0) known = false
    }
    anchored.set(pattern, known)
  }
  return known
}

/** @param copies whether what copies counts too. @param noteRun called with each pattern that runs. */
function countNatives(copies: boolean, noteRun: (pattern: RegExp) => void): () => void {
  const undo: Array<() => void> = []
  const patch = (owner: object, name: string, make: (native: Native) => Native) => {
    const native = Reflect.get(owner, name) as Native
    Object.defineProperty(owner, name, { value: make(native), configurable: true, writable: true })
    undo.push(() => Object.defineProperty(owner, name, { value: native, configurable: true, writable: true }))
  }
  const count = <Self>(owner: object, name: string, cost: Cost<Self>) =>
    patch(
      owner,
      name,
      (native) =>
        function (this: Self, ...inputs: unknown[]) {
          if (inputs[0] instanceof RegExp) noteRun(inputs[0])
          const result = Reflect.apply(native, this as never, inputs as never[])
          nativeSteps += Math.max(1, cost(this, inputs, result))
          return result
        } as Native,
    )
  for (const [name, cost] of Object.entries(STRING_COSTS)) count(String.prototype, name, cost)
  for (const [name, cost] of Object.entries(ARRAY_COSTS)) count(Array.prototype, name, cost)
  if (copies) {
    for (const [name, cost] of Object.entries(LONG_STRING_COSTS)) count(String.prototype, name, cost)
    for (const [name, cost] of Object.entries(COPY_COSTS)) count(Array.prototype, name, cost)
    for (const [name, cost] of Object.entries(OBJECT_COSTS)) count(Object, name, cost)
    for (const [name, cost] of Object.entries(JSON_COSTS)) count(JSON, name, cost)
    for (const [name, cost] of Object.entries(BYTES_COSTS))
      count(Object.getPrototypeOf(Uint8Array.prototype), name, cost)
    count(TextDecoder.prototype, 'decode', (_self, [bytes]) => bytesOf(bytes))
    count(TextEncoder.prototype, 'encode', (_self, [text]) => String(text ?? '').length)
  }
  for (const name of ['exec', 'test']) {
    patch(RegExp.prototype, name, () => {
      const exec = RegExp.prototype.exec
      return function (this: RegExp, text: string) {
        noteRun(this)
        const from = this.global || this.sticky ? this.lastIndex : 0
        const match = Reflect.apply(exec, this, [text]) as RegExpExecArray | null
        nativeSteps += Math.max(1, searchCost(this, from, text, match && match.index + match[0].length))
        return name === 'exec' ? match : match !== null
      } as unknown as Native
    })
  }
  return () => {
    for (const each of undo.reverse()) each()
  }
}

interface Allocations {
  profile: { samples: Array<{ size: number }> }
}

interface Coverage {
  result: Array<{ url: string; functions: Array<{ ranges: Array<{ count: number }> }> }>
}

/** Counts the steps of works, one after another. To be disposed of. */
export class StepCounter {
  readonly #session = new inspector.Session()
  readonly #copies: boolean
  readonly #patterns = new Map<string, RegExp>()
  readonly #seen = new WeakSet<RegExp>()

  /** @param options `copies`: whether what copies counts too: lists, objects, JSON and bytes. */
  constructor({ copies = false } = {}) {
    this.#copies = copies
    this.#session.connect()
    this.#session.post('Profiler.enable')
    this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  }

  /** The patterns that have run since the last call, where copies count. */
  takePatterns(): RegExp[] {
    const patterns = [...this.#patterns.values()]
    this.#patterns.clear()
    return patterns
  }

  stepsOf(work: () => void): number {
    this.#blocks()
    return this.#stepsSince(work)
  }

  /**
   * Counts asynchronous work. No other counted code may run meanwhile or between two of them: reading the blocks takes
   * milliseconds, so they are read once.
   */
  async stepsOfAsync(work: () => unknown): Promise<number> {
    const undo = this.#begin()
    try {
      await work()
    } finally {
      undo()
    }
    return this.#blocks() + nativeSteps
  }

  /**
   * The most steps of parts that run one after another. Reading the blocks takes milliseconds: they are read once for each
   * part.
   *
   * @param runPart runs the next part, and returns whether it was the last one
   */
  mostStepsOf(runPart: () => boolean): number {
    this.#blocks()
    let most = 0
    for (let isLast = false; !isLast; ) {
      const steps = this.#stepsSince(() => {
        isLast = runPart()
      })
      most = Math.max(most, steps)
    }
    return most
  }

  /** Steps of a work, whose blocks are all that ran since they were last read. */
  #stepsSince(work: () => void): number {
    const undo = this.#begin()
    try {
      work()
    } finally {
      undo()
    }
    return this.#blocks() + nativeSteps
  }

  #begin(): () => void {
    nativeSteps = 0
    return countNatives(this.#copies, (pattern) => {
      if (!this.#copies || this.#seen.has(pattern)) return
      this.#seen.add(pattern)
      this.#patterns.set(String(pattern), pattern)
    })
  }

  /** Bytes of all that a work allocates, from samples: within some percent of a few hundred kilobytes or more. */
  allocationOf(work: () => void): number {
    this.#session.post('HeapProfiler.startSampling', {
      samplingInterval: 4_096,
      includeObjectsCollectedByMajorGC: true,
      includeObjectsCollectedByMinorGC: true,
    })
    let bytes = 0
    try {
      work()
    } finally {
      this.#session.post('HeapProfiler.stopSampling', (error, result) => {
        if (error) throw error
        bytes = (result as unknown as Allocations).profile.samples.reduce((sum, { size }) => sum + size, 0)
      })
    }
    return bytes
  }

  [Symbol.dispose](): void {
    this.#session.post('Profiler.stopPreciseCoverage')
    this.#session.disconnect()
  }

  /** Runs of blocks since the last call. */
  #blocks(): number {
    let blocks = 0
    this.#session.post('Profiler.takePreciseCoverage', (error, coverage) => {
      if (error) throw error
      for (const { url, functions } of (coverage as unknown as Coverage).result) {
        if (!COUNTED.test(url)) continue
        for (const { ranges } of functions) for (const { count } of ranges) blocks += count
      }
    })
    return blocks
  }
}
