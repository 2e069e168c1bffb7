/**
 * Member names and element indexes from the root. The scanner changes it in place: copy it to keep it. A name above
 * `LONGEST_NAME_BYTES` is abbreviated to its first bytes and its offset, which makes it unique.
 */
export type JsonPath = ReadonlyArray<string | number>

export type JsonKind = 'object' | 'array' | 'string' | 'number' | 'boolean' | 'null'

export interface JsonVisitor {
  /**
   * A string value; `start` and `end` enclose its contents without the quotes, escapes untouched.
   * @param name the last member name on the path, '' without one. @param within whether one of `watched` is on the
   * path. Both are passed because a search through the path of every string takes too long in a deep body.
   */
  string?(path: JsonPath, start: number, end: number, name: string, within: boolean): void
  /** Member names for `within`. */
  watched?: ReadonlySet<string>
  /**
   * The end of a value no deeper than `valueDepth`.
   * @param memberStart where its key begins (for an element, or the root: where the value begins).
   * @param nameEnd the closing quote of its key; only of use for a member.
   */
  value?(
    path: JsonPath,
    kind: JsonKind,
    start: number,
    end: number,
    memberStart: number,
    nameEnd: number,
  ): void
  /** Values deeper than this many path entries are not passed to `value`. Default 1: the root's members. */
  valueDepth?: number
}

/** Text that is not JSON. `offset` is in bytes. */
export class JsonSyntaxError extends Error {
  readonly offset: number
  constructor(message: string, offset: number) {
    super(`${message} at byte ${offset}`)
    this.name = 'JsonSyntaxError'
    this.offset = offset
  }
}

/** Deeper nesting is refused: no client needs it, and later readers of the body may be recursive. */
export const MAXIMUM_DEPTH = 256

/** Text that may be JSON, but nests deeper than `MAXIMUM_DEPTH`. */
export class JsonDepthError extends JsonSyntaxError {
  constructor(offset: number) {
    super(`nested too deeply (at most ${MAXIMUM_DEPTH} levels)`, offset)
    this.name = 'JsonDepthError'
  }
}
