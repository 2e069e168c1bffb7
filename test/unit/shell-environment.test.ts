import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { dropShellEnvironment, shellEnvironment } from '../../scripts/shell-environment.ts'

describe('the file for a shell', () => {
  it.each(['sh', 'bash'])('gives %s each value as it is', (shell) => {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-a folder-'))
    const file = join(folder, 'env.sh')
    const [url, key] = ['http://127.0.0.1:8787', `hg_a b'c"d$HOME\`id\`\\e!`]
    writeFileSync(file, shellEnvironment({ baseUrl: url, key, adminToken: 'hga_1', agentId: 'an agent' }))
    const names = ['HEADGATE_URL', 'HEADGATE_KEY', 'OPENAI_BASE_URL', 'OPENAI_API_KEY']
    names.push('ANTHROPIC_BASE_URL', 'ANTHROPIC_API_KEY', 'HEADGATE_AGENT', 'ADMIN_TOKEN')
    const print = `. "$1" && "$2" -p 'JSON.stringify(process.argv.slice(1).map((name) => process.env[name]))' $3`
    const printed = execFileSync(shell, ['-c', print, shell, file, process.execPath, names.join(' ')])
    rmSync(folder, { recursive: true })
    expect(JSON.parse(String(printed))).toEqual([url, key, `${url}/v1`, key, url, key, 'an agent', 'hga_1'])
  })

  it('does not make the next local system its own provider', () => {
    const own = { HEADGATE_KEY: 'hg_1', OPENAI_API_KEY: 'hg_1', OPENAI_BASE_URL: 'http://127.0.0.1:8787/v1' }
    const real = { ANTHROPIC_API_KEY: 'sk-ant', ANTHROPIC_BASE_URL: 'https://api.example' }
    const environment: NodeJS.ProcessEnv = { ...own, ...real }
    dropShellEnvironment(environment)
    expect(environment).toEqual({ HEADGATE_KEY: 'hg_1', ...real })
  })

  it('takes no token of another folder for the next local system, but one that the user has set', () => {
    const sourced: NodeJS.ProcessEnv = {
      HEADGATE_KEY: 'hg_1',
      ANTHROPIC_API_KEY: 'hg_1',
      ADMIN_TOKEN: 'hga_1',
    }
    dropShellEnvironment(sourced)
    expect(sourced).toEqual({ HEADGATE_KEY: 'hg_1' })
    const own: NodeJS.ProcessEnv = {
      HEADGATE_KEY: 'hg_1',
      ANTHROPIC_API_KEY: 'sk-ant',
      ADMIN_TOKEN: 'chosen',
    }
    dropShellEnvironment(own)
    expect(own.ADMIN_TOKEN).toBe('chosen')
  })
})
