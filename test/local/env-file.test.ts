import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { unstable_getVarsForDev as readAsWrangler } from 'wrangler'
import { formatEnvFile } from '../../scripts/local/env-file.ts'

describe('the file of variables that wrangler reads', () => {
  it.each([
    'plain',
    '',
    'a=b,c/d+e:f==',
    'spaces  and # hash',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the value under test
    'dollar $HOME ${HOME} $$ \\$',
    `single ' quote`,
    'double " quote',
    'back ` tick',
    'line\nbreak',
    'back\\slash and \\n',
    `it's "both"`,
    'ünïcödé 🙂',
  ])('keeps %j', (value) => {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-env-'))
    const file = join(folder, 'worker.env')
    writeFileSync(file, formatEnvFile({ BEFORE: 'x', VALUE: value, AFTER: 'y' }))
    const read = readAsWrangler(join(folder, 'wrangler.toml'), [file], {}, undefined, true)
    rmSync(folder, { recursive: true })
    const text = (name: string) => (read[name] as { value: string } | undefined)?.value
    expect([text('BEFORE'), text('VALUE'), text('AFTER')]).toEqual(['x', value, 'y'])
  })
})
