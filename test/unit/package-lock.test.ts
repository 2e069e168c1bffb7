import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

interface LockedPackage {
  os?: string | string[]
  cpu?: string | string[]
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
}

const TEXT = readFileSync(join(import.meta.dirname, '../../package-lock.json'), 'utf8')
const { packages } = JSON.parse(TEXT) as { packages: Record<string, LockedPackage> }

/** Programs that are compiled for each platform, by a part of the names of their packages. */
const COMPILED = {
  'Node.js': /^node_modules\/node-(?:bin-)?(?:linux|darwin|win)-/,
  workerd: /^node_modules\/@cloudflare\/workerd-/,
  Biome: /^node_modules\/@biomejs\/cli-/,
  TypeScript: /^node_modules\/@typescript\/typescript-/,
  esbuild: /^node_modules\/@esbuild\//,
  Rolldown: /^node_modules\/@rolldown\/binding-/,
  'Lightning CSS': /^node_modules\/lightningcss-/,
}
const PLATFORMS = ['linux', 'darwin', 'win32'].flatMap((os) => ['x64', 'arm64'].map((cpu) => ({ os, cpu })))

/** Cloudflare publishes none: Windows on ARM runs the x64 packages under Node.js for x64. */
const UNPUBLISHED = ['workerd win32 arm64']

describe('package-lock.json', () => {
  it('holds every package that its packages name, those of other platforms too, or npm ci refuses it', () => {
    const missing = Object.entries(packages).flatMap(([path, { dependencies, optionalDependencies }]) =>
      Object.keys({ ...dependencies, ...optionalDependencies })
        .filter((name) => !isLocked(path, name))
        .map((name) => `${path}: ${name}`),
    )

    expect(missing).toEqual([])
  })

  it('has each compiled program for Linux, macOS and Windows on both architectures', () => {
    const missing = Object.entries(COMPILED).flatMap(([program, names]) =>
      PLATFORMS.filter(
        (platform) =>
          !Object.entries(packages).some(([path, it]) => names.test(path) && runsOn(it, platform)),
      ).map(({ os, cpu }) => `${program} ${os} ${cpu}`),
    )

    expect(missing).toEqual(UNPUBLISHED)
  })

  it('names no registry', () => {
    expect(TEXT).not.toContain('"resolved"')
  })
})

/** Whether Node.js finds a package from another one: in its folder or in one above. */
function isLocked(from: string, name: string): boolean {
  const inside = from === '' ? `node_modules/${name}` : `${from}/node_modules/${name}`
  if (inside in packages) return true
  return from !== '' && isLocked(from.slice(0, Math.max(0, from.lastIndexOf('/node_modules/'))), name)
}

const runsOn = ({ os = [], cpu = [] }: LockedPackage, platform: { os: string; cpu: string }) =>
  [os].flat().includes(platform.os) && [cpu].flat().includes(platform.cpu)
