import { StartError } from './children.ts'

/**
 * Variables in the form that wrangler's `--env-file` reads back unchanged: it knows three quotes without escapes,
 * and expands `$NAME` in all of them unless the dollar is escaped.
 *
 * @throws StartError naming a variable whose value has no such form
 */
export function formatEnvFile(variables: Record<string, string>): string {
  const lines = Object.entries(variables).map(([name, value]) => {
    const quote = ["'", '"', '`'].find((candidate) => !value.includes(candidate))
    // Inside double quotes a backslash before n or r would become a line break.
    if (quote === undefined || (quote === '"' && value.includes('\\'))) {
      throw new StartError(`${name} mixes quotes in a way that cannot be passed to the Worker`)
    }
    return `${name}=${quote}${value.replaceAll('$', '\\$')}${quote}\n`
  })
  return lines.join('')
}
