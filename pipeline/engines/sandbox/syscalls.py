"""Numbers of the system calls the filter speaks about.

From ``asm/unistd_64.h`` (x86_64) and ``asm-generic/unistd.h`` (aarch64) of Linux 6.1, and the kernel's tables
for later ones. ``None`` where an architecture has no such call.
"""

from __future__ import annotations

from types import MappingProxyType

# The first number this table does not know; later calls are answered "not implemented", which libraries
# are written to expect.
UNKNOWN_FROM = 468

Numbers = tuple[int | None, int | None]

# Refused whatever their arguments are.
DENIED: MappingProxyType[str, Numbers] = MappingProxyType(
    {
        # Sockets: none may be made, so there is none to connect; the others guard a stray descriptor.
        "socket": (41, 198),
        "connect": (42, 203),
        "bind": (49, 200),
        "listen": (50, 201),
        "accept": (43, 202),
        "accept4": (288, 242),
        # Other processes.
        "ptrace": (101, 117),
        "process_vm_readv": (310, 270),
        "process_vm_writev": (311, 271),
        "process_madvise": (440, 440),
        "process_mrelease": (448, 448),
        "pidfd_open": (434, 434),
        "pidfd_getfd": (438, 438),
        "pidfd_send_signal": (424, 424),
        "kcmp": (312, 272),
        "migrate_pages": (256, 238),
        "move_pages": (279, 239),
        "setpriority": (141, 140),
        "ioprio_set": (251, 30),
        "sched_setaffinity": (203, 122),
        "sched_setparam": (142, 118),
        "sched_setscheduler": (144, 119),
        "sched_setattr": (314, 274),
        # Memory, semaphores and queues that any process of the same user can name.
        "shmget": (29, 194),
        "shmat": (30, 196),
        "shmctl": (31, 195),
        "semget": (64, 190),
        "semop": (65, 193),
        "semtimedop": (220, 192),
        "semctl": (66, 191),
        "msgget": (68, 186),
        "msgsnd": (69, 189),
        "msgrcv": (70, 188),
        "msgctl": (71, 187),
        "mq_open": (240, 180),
        "mq_unlink": (241, 181),
        # Files changed or watched by path without being opened: Landlock does not govern these.
        "chmod": (90, None),
        "fchmodat": (268, 53),
        "fchmodat2": (452, 452),
        "chown": (92, None),
        "lchown": (94, None),
        "fchownat": (260, 54),
        "setxattr": (188, 5),
        "lsetxattr": (189, 6),
        "setxattrat": (463, 463),
        "removexattr": (197, 14),
        "lremovexattr": (198, 15),
        "removexattrat": (466, 466),
        "truncate": (76, 45),
        "mknod": (133, None),
        "mknodat": (259, 33),
        "inotify_add_watch": (254, 27),
        "fanotify_init": (300, 262),
        "fanotify_mark": (301, 263),
        "name_to_handle_at": (303, 264),
        "open_by_handle_at": (304, 265),
        # Mounts and namespaces.
        "mount": (165, 40),
        "umount2": (166, 39),
        "pivot_root": (155, 41),
        "chroot": (161, 51),
        "unshare": (272, 97),
        "setns": (308, 268),
        "move_mount": (429, 429),
        "open_tree": (428, 428),
        "open_tree_attr": (467, 467),
        "fsopen": (430, 430),
        "fsconfig": (431, 431),
        "fsmount": (432, 432),
        "fspick": (433, 433),
        "mount_setattr": (442, 442),
        # The kernel's own large surfaces, and the machine.
        "add_key": (248, 217),
        "request_key": (249, 218),
        "keyctl": (250, 219),
        "bpf": (321, 280),
        "perf_event_open": (298, 241),
        "userfaultfd": (323, 282),
        "io_uring_setup": (425, 425),
        "io_uring_enter": (426, 426),
        "io_uring_register": (427, 427),
        "init_module": (175, 105),
        "finit_module": (313, 273),
        "delete_module": (176, 106),
        "kexec_load": (246, 104),
        "kexec_file_load": (320, 294),
        "reboot": (169, 142),
        "swapon": (167, 224),
        "swapoff": (168, 225),
        "quotactl": (179, 60),
        "quotactl_fd": (443, 443),
        "acct": (163, 89),
        "syslog": (103, 116),
        "settimeofday": (164, 170),
        "clock_settime": (227, 112),
        "clock_adjtime": (305, 266),
        "adjtimex": (159, 171),
        "sethostname": (170, 161),
        "setdomainname": (171, 162),
        "iopl": (172, None),
        "ioperm": (173, None),
        "vhangup": (153, 58),
    }
)

# Refused to a job that may not start programs.
PROGRAMS: MappingProxyType[str, Numbers] = MappingProxyType(
    {"fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281)}
)

# Refused where Landlock cannot confine signals.
SIGNALS: MappingProxyType[str, Numbers] = MappingProxyType(
    {"kill": (62, 129), "tkill": (200, 130), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240)}
)

# Judged by their arguments.
CLONE: Numbers = (56, 220)
CLONE3: Numbers = (435, 435)
PRLIMIT: Numbers = (302, 261)
SOCKETPAIR: Numbers = (53, 199)
TGKILL: Numbers = (234, 131)
