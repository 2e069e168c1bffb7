/** A reader of what others send, with what its inputs are made of. */
export type Reader = TextReader | ListReader

export interface TextReader {
  name: string
  fragments: readonly string[]
  read: (text: string) => unknown
  /** Texts of a length that once took more than linear work. */
  known?: ReadonlyArray<(length: number) => string>
  /** Steps for each character; `MOST_STEPS_PER_UNIT` where it is left out. */
  most?: number
}

/** Makes an element of a list, or a member of an object, by its place. */
export type Make = (index: number) => unknown

export interface ListReader {
  name: string
  /** By path, of which a part that ends with `{}` is an object with a member for each element. */
  lists: Record<string, readonly Make[]>
  read: (members: Record<string, unknown>) => unknown
  /** Steps for each element. */
  most?: number
  /** Steps at which the reader gives up, in place of `most`: below them its steps may grow as they like. */
  budget?: number
}

const encoder = new TextEncoder()

export const bytes = (text: string): Uint8Array => encoder.encode(text)
export const json = (value: unknown): Uint8Array => bytes(JSON.stringify(value))

/** The result of a reader, which refuses what it cannot read. */
export const refusable = (read: () => unknown): unknown => {
  try {
    return read()
  } catch {
    return null
  }
}
