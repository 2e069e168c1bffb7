import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')

/** What `npm run build` writes; BUNDLE_DIR names another folder. */
export const BUNDLE_FOLDER = process.env.BUNDLE_DIR || join(ROOT, 'dist')
export const GATEWAY_CONFIGURATION = join(ROOT, 'wrangler.toml')
export const TOOLS_CONFIGURATION = join(ROOT, 'workers/tools/wrangler.toml')
