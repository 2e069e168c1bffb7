import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Navigate,
  Outlet,
} from '@tanstack/react-router'
import { addressToken } from './data/address-token.ts'
import { useMe } from './data/me.ts'
import { isSignedOut } from './data/refusals.ts'
import { Failure, Waiting } from './design/notice.tsx'
import { Shell } from './design/shell.tsx'

/** The sitemap of the console. */
const root = createRootRoute()

const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  // Only a page of the console is returned to.
  validateSearch: ({ to }: { to?: unknown }): { to?: string } =>
    typeof to === 'string' && to.startsWith('/console/') ? { to } : {},
  component: lazyRouteComponent(() => import('./pages/sign-in/sign-in.tsx'), 'SignInPage'),
})
const setup = createRoute({
  getParentRoute: () => root,
  path: '/setup',
  component: lazyRouteComponent(() => import('./pages/setup/setup.tsx'), 'SetupPage'),
})
const start = createRoute({ getParentRoute: () => root, path: '/', component: StartPage })
const organization = createRoute({ getParentRoute: () => root, path: '/$slug', component: Organization })
const home = createRoute({ getParentRoute: () => organization, path: '/', component: StartPage })
const api = createRoute({
  getParentRoute: () => organization,
  path: '/settings/api',
  component: lazyRouteComponent(() => import('./pages/settings-api/settings-api.tsx'), 'SettingsApiPage'),
})
const calls = createRoute({
  getParentRoute: () => organization,
  path: '/calls',
  validateSearch: ({ q }: { q?: unknown }): { q?: string } => (typeof q === 'string' ? { q } : {}),
  component: lazyRouteComponent(() => import('./pages/calls/calls.tsx'), 'CallsPage'),
})
const oneCall = createRoute({
  getParentRoute: () => organization,
  path: '/calls/$callId',
  component: lazyRouteComponent(() => import('./pages/call/call.tsx'), 'CallPage'),
})
const models = createRoute({
  getParentRoute: () => organization,
  path: '/models',
  component: lazyRouteComponent(() => import('./pages/models/models.tsx'), 'ModelsPage'),
})

export const router = createRouter({
  routeTree: root.addChildren([
    signIn,
    setup,
    start,
    organization.addChildren([home, calls, oneCall, api, models]),
  ]),
  basepath: '/console',
  defaultNotFoundComponent: () => <Navigate to="/" replace />,
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}

/** Leads to the first page of the user's organization, or to the sign-in. */
function StartPage() {
  const me = useMe()
  if (addressToken('start') !== null) return <Navigate to="/sign-in" replace />
  if (me.data)
    return <Navigate to="/$slug/settings/api" params={{ slug: me.data.organization.slug }} replace />
  if (isSignedOut(me.error)) return <Navigate to="/sign-in" replace />
  return me.error ? <Failure error={me.error} retry={() => me.refetch()} /> : <Waiting />
}

/** The frame of a signed-in user. A session that ends later keeps the page with what was typed there. */
function Organization() {
  const me = useMe()
  const { slug } = organization.useParams()
  if (!me.data) {
    if (isSignedOut(me.error)) return <Navigate to="/sign-in" search={{ to: location.pathname }} replace />
    return me.error ? <Failure error={me.error} retry={() => me.refetch()} /> : <Waiting />
  }
  if (slug !== me.data.organization.slug) return <Navigate to="/" replace />
  return (
    <Shell me={me.data}>
      <Outlet />
    </Shell>
  )
}
