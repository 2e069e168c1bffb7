import { parseArgs } from 'node:util'

type Options = Record<string, { type: 'string' | 'boolean' }>
type Values<Given extends Options> = {
  [Name in keyof Given]?: Given[Name]['type'] extends 'boolean' ? boolean : string
}

/**
 * Reads the options of a script. `--help` prints the usage on stdout and ends the process with 0.
 * @param usage the whole text, with a line break at its end
 * @returns the values of the options that are given; a wrong option ends the process by `refuseUsage`
 */
export function readOptions<const Given extends Options>(usage: string, options: Given): Values<Given> {
  const { help, ...values } = parsed(usage, options)
  if (help !== true) return values as Values<Given>
  process.stdout.write(usage)
  process.exit(0)
}

function parsed(usage: string, options: Options): Record<string, unknown> {
  try {
    return parseArgs({ options: { ...options, help: { type: 'boolean', short: 'h' } } }).values
  } catch (error) {
    // What follows the first sentence is about options that begin with a minus.
    return refuseUsage(usage, (error as Error).message.split('. ', 1)[0] ?? '')
  }
}

/** Prints the reason and the usage on stderr, and ends the process with 2. */
export function refuseUsage(usage: string, reason: string): never {
  process.stderr.write(`${reason}\n\n${usage}`)
  process.exit(2)
}
