import { structuredPatch } from 'diff'
import { type CustomCommand, defineCommand } from 'just-bash/browser'

/** Lines that differ. The time of a comparison grows with their square: half a second. */
const MOST_DIFFERENCES = 2_500
/** Characters of both files, which are held as lines. */
const MOST_CHARACTERS = 8 * 1024 * 1024

/**
 * `diff` of just-bash for files that it can compare in little time; an error for others. It compares without a pause, so that it
 * could not be stopped otherwise.
 */
export const diffCommand: CustomCommand = defineCommand('diff', async (parameters, context) => {
  const { fs, cwd, stdin, origCommand } = context
  const names = parameters.filter((each) => each === '-' || !each.startsWith('-'))
  const texts = await Promise.all(
    names.map((name) =>
      name === '-' ? String(stdin) : fs.readFile(fs.resolvePath(cwd, name)).catch(() => null),
    ),
  )
  if (areComparable(texts)) return origCommand?.(parameters) ?? NOT_COMPARED
  return NOT_COMPARED
})

/** @param texts null for a file that cannot be read, which the command reports. */
function areComparable([first = null, second = null]: readonly (string | null)[]): boolean {
  if (first === null || second === null || first === second) return true
  if (first.length + second.length > MOST_CHARACTERS) return false
  const options = { context: 0, maxEditLength: MOST_DIFFERENCES }
  return structuredPatch('', '', first, second, '', '', options) !== undefined
}

const NOT_COMPARED = {
  stdout: '',
  stderr: 'diff: the files are too large or too different; compare parts of them\n',
  exitCode: 2,
}
