import { type ReadResult, WorkspaceError } from './contract.ts'

/** Characters of one reading. */
const READ_LIMIT = 64 * 1024
const LINE_FEED = 10

const decoder = new TextDecoder()

/**
 * Reads some lines of a text file. Only these lines are held in memory: a file of 16 MB may have as many lines as bytes.
 * @param offset the first line, counted from 1. @throws WorkspaceError invalid for a binary file
 */
export function readLines(bytes: Uint8Array, offset: number, limit: number): ReadResult {
  if (bytes.subarray(0, 8_192).includes(0))
    throw new WorkspaceError('invalid', 'The file is binary. Use the shell.')
  const chosen: string[] = []
  let [length, lines, start] = [0, 0, 0]
  for (let end = 0; end <= bytes.length; end++) {
    // The text after the last line feed is a line unless it is empty.
    if (end < bytes.length ? bytes[end] !== LINE_FEED : end === start) continue
    lines++
    if (lines >= offset && lines < offset + limit && length <= READ_LIMIT) {
      // A character has at most three bytes for each UTF-16 unit.
      const line = decoder.decode(bytes.subarray(start, Math.min(end, start + 3 * READ_LIMIT)))
      length += line.length + 1
      if (length <= READ_LIMIT || chosen.length === 0) chosen.push(line.slice(0, READ_LIMIT))
    }
    start = end + 1
  }
  return {
    content: chosen.join('\n'),
    firstLine: offset,
    lastLine: Math.max(0, offset - 1 + chosen.length),
    totalLines: lines,
    cut: length > READ_LIMIT,
  }
}
