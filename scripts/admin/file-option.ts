import { readFileSync } from 'node:fs'
import type { Call, Option } from './command.ts'
import { usageError } from './errors.ts'
import type { Item } from './gateway.ts'

/** An option that names a file with JSON. */
export const fileOption = (describe: string, required?: true): Record<string, Option> => ({
  file: { value: 'path', describe, ...(required && { required }) },
})

/** The members of a request, from the file that `--file` names; `-` is standard input. */
export async function membersOf(call: Call): Promise<Item> {
  if (call.options.text('file') === undefined) return {}
  const { path, text } = await fileText(call)
  const value = parse(text)
  if (value === null) throw usageError(`${path} does not hold a JSON object`)
  return value
}

/** The text of the file that `--file` names; `-` is standard input. */
export async function fileText(call: Call): Promise<{ path: string; text: string }> {
  const path = call.options.text('file') ?? ''
  return { path, text: path === '-' ? await call.readInput() : readText(path) }
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw usageError(`${path} cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'no reason given'}`)
  }
}

function parse(text: string): Item | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Item) : null
  } catch {
    return null
  }
}
