import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'

// What compose.yaml, the Containerfile and the units of systemd say, for the tests that check it and those that start by it.

const ROOT = join(import.meta.dirname, '../..')

export const readPackaging = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

export interface ComposeService {
  image?: string
  user?: string
  read_only?: boolean
  entrypoint?: string[]
  command?: string[]
  ports?: string[]
  networks: string[]
  volumes?: string[]
  security_opt?: string[]
  healthcheck?: object
  depends_on?: Record<string, { condition: string }>
  stop_grace_period?: string
  environment?: Record<string, string>
  mem_limit?: string
  profiles?: string[]
}

export interface Compose {
  name: string
  services: Record<string, ComposeService>
  networks: Record<string, { internal?: boolean }>
  volumes: Record<string, object>
}

export const readCompose = () => parse(readPackaging('compose.yaml'), { merge: true }) as Compose

/** Where a service has its volumes: by the folder in the container, the volume or the folder of the host. */
export const mountsOf = ({ volumes = [] }: ComposeService): Record<string, string> =>
  Object.fromEntries(volumes.map((volume) => volume.split(':', 2).reverse()))

/** The last stage of the Containerfile. */
export function readImage() {
  const text = readPackaging('Containerfile')
  const stage = text.slice(text.lastIndexOf('\nFROM '))
  const words = (pattern: RegExp) => pattern.exec(stage)?.[1]?.trim().split(/\s+/) ?? []
  const copied = [...stage.matchAll(/^COPY --from=build (.+)$/gm)].flatMap(([, line = '']) =>
    line.split(' ').slice(0, -1),
  )
  const [made, closed] = [words(/mkdir ((?:\/\w+ ?)+)/), words(/chmod 700 ((?:\/\w+ ?)+)/)]
  return {
    /** Paths in the repository. */
    files: copied.map((path) => path.replace('/headgate/', '')),
    /** Folders that belong to the user `node`, with mode 0700. A new volume at one of them begins as its copy. */
    folders: words(/chown node:node ((?:\/\w+ ?)+)/).filter(
      (folder) => made.includes(folder) && closed.includes(folder),
    ),
    entrypoint: JSON.parse(/^ENTRYPOINT (.+)$/m.exec(stage)?.[1] ?? '[]') as string[],
  }
}

/** @param name `headgate` or `headgate-tools` */
export function readUnit(name: string) {
  const text = readPackaging(`packaging/systemd/${name}.service`)
  const all = (key: string) =>
    [...text.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value = '']) => value)
  const words = (key: string) => all(key).flatMap((value) => value.split(' '))
  return {
    text,
    user: all('User')[0] ?? 'root',
    command: words('ExecStart'),
    environment: Object.fromEntries(words('Environment').map((pair) => pair.split(/=(.*)/s, 2))),
    /** Folders that systemd makes for the user of the unit. All others are read-only (`ProtectSystem=strict`). */
    folders: words('StateDirectory').map((folder) => `/var/lib/${folder}`),
    folderMode: Number.parseInt(all('StateDirectoryMode')[0] ?? '0755', 8),
  }
}

/** The settings that name folders a process writes to. */
const FOLDER_SETTINGS = ['DATA_DIR', 'CONTENT', 'TOOLS_DATA_DIR']

export const foldersOf = (environment: Record<string, string> = {}): string[] =>
  FOLDER_SETTINGS.flatMap((name) => environment[name] ?? [])
